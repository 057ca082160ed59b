// Recipes: the precision of a whole model by name.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "numsim/base/nearest_name.h"
#include "numsim/config/config.h"

namespace numsim {
namespace {

struct RecipeRow {
  TrainRecipe recipe;
  std::string_view high_layer = {};  // pattern of layers whose X is in high precision
  std::optional<MlpKind> mlp = {};
};

constexpr std::string_view kFp8Delayed = "kind=te-hybrid delayed_history=1024";
// Gaudi's float8, whose E4M3 ends at 240, in windows of one micro-batch.
constexpr std::string_view kFishman =
    "kind=e5m2-backward format=ieee-e4m3 gradient_rounding=sr delayed_history=1 "
    "delayed_algorithm=window";

// Name, meaning with its source, and what it sets.
// clang-format off
constexpr RecipeRow kRecipeRows[] = {
    {{"bf16",           "every linear layer in bf16", ""}},
    {{"fp8-delayed",    "[TransformerEngine] DelayedScaling: E4M3, gradients in E5M2, a scale per tensor from the largest of 1024 steps",
      kFp8Delayed}},
    {{"fp8-current",    "[TransformerEngine] Float8CurrentScaling: the same with the scale of the tensor itself",
      "kind=te-hybrid"}},
    {{"fp8-block",      "[TransformerEngine] Float8BlockScaling: E4M3 with scales per 128 elements and per 128 x 128 weights",
      "kind=block"}},
    {{"fp8-mx",         "[OCP-MX] in E4M3: E8M0 scales per 32 elements, rounded down",
      "kind=mx"}},
    {{"te-mxfp8",       "[TransformerEngine] MXFP8BlockScaling, [torchao] mxfp8_rceil: E4M3 with E8M0 scales per 32 elements, rounded up",
      "kind=mx scale_rule=pow2-ceil"}},
    {{"fp8-row-wise",   "[torchao] rowwise_with_gw_hp: E4M3 with scales per row, weight gradients in bf16",
      "kind=row-wise-gw-hp"}},
    {{"fp8-delayed-w3-bf16", "fp8-delayed with the input of the MLP's last layer in bf16: [Fishman] Figure 3",
      kFp8Delayed}, "*.mlp.down"},
    {{"fp8-delayed-smooth",  "fp8-delayed with Smooth-SwiGLU per channel: [Fishman] Equation 3",
      kFp8Delayed}, {}, MlpKind::kSmoothSwiglu},
    {{"fp8-fishman",    "reference code of [Fishman]: E4M3 up to 240, E5M2 copies for the backward pass, stochastic gradients, power-of-two scales of the step before",
      kFishman}},
    {{"fp8-fishman-smooth",  "fp8-fishman with the code's Smooth-SwiGLU, per token",
      kFishman}, {}, MlpKind::kSmoothSwigluToken},
    {{"nvidia-nvfp4",   "[NVFP4]: weights in tiles of 16 x 16, stochastic gradients, random Hadamard transforms of the weight gradient",
      "kind=block format=nvfp4 gradient_rounding=sr hadamard=weight-gradient"}},
    {{"te-nvfp4",       "[TransformerEngine] NVFP4BlockScaling: the same with its scales and its signs",
      "kind=block format=nvfp4 scale_rule=nvfp4-inverse gradient_rounding=sr hadamard=weight-gradient hadamard_signs=0xD7E8"}},
    {{"te-nvfp4-row-scaled", "[TransformerEngine] NVFP4BlockScaling(row_scaled_activation): the same with a second scale per row of forward X",
      "kind=block format=nvfp4 scale_rule=nvfp4-inverse,forward.x=nvfp4-row gradient_rounding=sr hadamard=weight-gradient hadamard_signs=0xD7E8"}},
    {{"four-over-six",  "[FourOverSix] as its code trains: blocks that end at 4 or 6, whichever has the smaller squared error, without tiles of weights",
      "kind=mx format=nvfp4 scale_rule=4over6-mse gradient_rounding=sr hadamard=weight-gradient"}},
    {{"quartet-2",      "[Quartet-II]: four over six forward; backward GEMMs requantise its codes by MS-EDEN in blocks of 128 with new signs each step",
      "kind=mx format=nvfp4 scale_rule=4over6-mse,input-gradient=ms-eden,weight-gradient=ms-eden backward_from_codes=x,w hadamard=input-gradient,weight-gradient hadamard_size=128 hadamard_signs=redrawn"}},
    {{"ufp4",           "[UFP4]: the uniform grid of E1M2 under the scales of NVFP4, Hadamard transforms of all GEMMs, stochastic gradients",
      "kind=mx format=e1m2:inf=none,nan=none block=16 scale_rule=nvfp4 gradient_rounding=sr hadamard=forward,input-gradient,weight-gradient"}},
    {{"amd-mxfp4",      "[AMD-MXFP4], [ROCm-TE] MXFP4BlockScaling: MXFP4, deterministic Hadamard transforms of all GEMMs",
      "kind=mx format=mxfp4 scale_rule=e8m0-even hadamard=forward,input-gradient,weight-gradient hadamard_signs=fixed"}},
};
// clang-format on

constexpr auto kTrainRecipes = [] {
  std::array<TrainRecipe, std::size(kRecipeRows)> recipes;
  for (size_t i = 0; i < recipes.size(); ++i) recipes[i] = kRecipeRows[i].recipe;
  return recipes;
}();

// Returns "linear.KEY=VALUE" of each setting.
std::vector<std::string> KeysOf(std::string_view settings) {
  std::vector<std::string> keys;
  while (!settings.empty()) {
    const size_t end = std::min(settings.find(' '), settings.size());
    keys.push_back(fmt::format("linear.{}", settings.substr(0, end)));
    settings.remove_prefix(std::min(end + 1, settings.size()));
  }
  return keys;
}

}  // namespace

std::span<const TrainRecipe> TrainRecipes() { return kTrainRecipes; }

void ApplyTrainRecipe(std::string_view name, TrainConfig& config) {
  std::string valid;
  for (const RecipeRow& row : kRecipeRows) {
    if (row.recipe.name != name) {
      valid += fmt::format("{}{}", valid.empty() ? "" : ", ", row.recipe.name);
      continue;
    }
    config.linear = {.all = {}, .first_last_high = true};
    SetConfigKeys(KeysOf(row.recipe.settings), config);
    if (!row.high_layer.empty()) {
      LinearOverride high{std::string(row.high_layer), config.linear.all};
      high.precision.high_operands = ParseOperandSet("x");
      config.linear.overrides = {high};
    }
    if (row.mlp.has_value()) config.model.mlp = *row.mlp;
    return;
  }
  throw NotOneOf("recipe", name, valid);
}

}  // namespace numsim
