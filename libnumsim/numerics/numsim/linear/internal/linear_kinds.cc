#include "numsim/linear/internal/linear_kinds.h"

#include <array>
#include <string>

#include "numsim/base/nearest_name.h"
#include "numsim/formats/decode.h"

namespace numsim {
namespace {

// One entry per kind: name, meaning and source; then the recipe.
// clang-format off
constexpr LinearKindRow kRows[] = {
    {.kind = {"standard",       "every product in high precision", "[SwitchBack] Algorithm 5"},
     .scaling = "hhhhhh"},
    {.kind = {"switchback",     "rows of X and G against all of W; weight gradient in high precision", "[SwitchBack] Algorithm 1"},
     .scaling = "rtrthh"},
    {.kind = {"switchback-m",   "switchback that keeps quantised tensors alone", "[SwitchBack] Algorithm 3"},
     .scaling = "rtrthh", .saves = LinearSaves::kQuantized},
    {.kind = {"switchback-q",   "switchback with rows and columns of W", "[SwitchBack] Algorithm 4"},
     .scaling = "rrrrhh"},
    {.kind = {"llm-int8",       "switchback-q with the weight gradient quantised too, by columns of G and X", "[SwitchBack] section 2.2.3, [LLM-int8]"},
     .scaling = "rrrrrr"},
    {.kind = {"llm-int8-tensor-w", "llm-int8 with one scale for W: switchback with the weight gradient quantised too", "[SwitchBack] Algorithm 1, section 2.2.3"},
     .scaling = "rtrtrr"},
    {.kind = {"tensor-wise",    "every product quantised, one scale a tensor", "[SwitchBack] section 2.2.3, [torchao] tensorwise"},
     .scaling = "tttttt", .e5m2_gradients = true},
    {.kind = {"row-wise-gw-hp", "row-wise float8, tensor-wise W in the input gradient, weight gradient in high precision", "[torchao] rowwise_with_gw_hp"},
     .scaling = "rrrthh", .format = "e4m3fn", .scale_rule = ScaleRule::kPow2Ceil},
    {.kind = {"te-hybrid",      "each tensor quantised once with one scale, current or delayed", "[TransformerEngine] Float8CurrentScaling, DelayedScaling"},
     .scaling = "tttttt", .saves = LinearSaves::kQuantized, .format = "e4m3fn", .e5m2_gradients = true, .delayed = true},
    {.kind = {"e5m2-backward",  "float8 tensors with one scale, current or delayed; in the backward pass, copies in the gradients' format", "[Fishman] reference code, experimental/fp8_linear.py"},
     .scaling = "tttttt", .format = "e4m3fn", .scale_rule = ScaleRule::kPow2Floor, .e5m2_gradients = true, .e5m2_backward = true, .delayed = true},
    {.kind = {"block",          "blocks of X and G along the inner dimension, square tiles of W", "[DeepSeek-V3], [TransformerEngine] Float8BlockScaling"},
     .scaling = "bsbsbb", .format = "e4m3fn", .scale_rule = ScaleRule::kPow2Ceil, .block = 128},
    {.kind = {"mx",             "MX blocks of every operand along the inner dimension", "[OCP-MX], [TransformerEngine] MXFP8BlockScaling"},
     .scaling = "bbbbbb", .format = "e4m3fn", .scale_rule = ScaleRule::kE8m0, .block = 32},
};
// clang-format on

constexpr auto kKinds = [] {
  std::array<LinearKind, std::size(kRows)> kinds;
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i] = kRows[i].kind;
  return kinds;
}();

}  // namespace

bool ContainerHolds(const FormatSpec& container, const FormatSpec& format) {
  // The distance of the subnormals is the smallest step of a format, and its largest value has the
  // most significant bits.
  return container.mantissa_bits >= format.mantissa_bits &&
         container.SubnormalExponent() <= format.SubnormalExponent() &&
         MaxFinite(container) >= MaxFinite(format);
}

bool FitsContainer(const OperandRecipe& operand, const FormatSpec& container) {
  return ContainerHolds(container, operand.format.spec) &&
         (operand.layout.block == 0 || GivesPowersOfTwo(operand.scale_rule));
}

std::span<const LinearKindRow> LinearKindRows() { return kRows; }

std::span<const LinearKind> LinearKinds() { return kKinds; }

const LinearKindRow& FindLinearKind(std::string_view name) {
  std::string valid;
  for (const LinearKindRow& row : kRows) {
    if (row.kind.name == name) return row;
    if (!valid.empty()) valid += ", ";
    valid += row.kind.name;
  }
  throw NotOneOf("kind", name, valid);
}

}  // namespace numsim
