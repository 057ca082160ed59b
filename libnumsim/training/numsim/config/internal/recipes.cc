// Recipes: the precision of a whole model by name.
#include <array>
#include <optional>

#include "numsim/base/nearest_name.h"
#include "numsim/config/config.h"

namespace numsim {
namespace {

struct RecipeRow {
  TrainRecipe recipe;
  LinearOptions (*linear)();
  std::string_view high_layer = {};  // pattern of layers whose X is in high precision
  std::optional<MlpKind> mlp = {};
};

LinearOptions Standard() { return {}; }

LinearOptions Current() { return {.kind = "te-hybrid"}; }

LinearOptions Delayed() {
  LinearOptions options = Current();
  options.delayed = DelayedScalingOptions{};
  return options;
}

LinearOptions Block() { return {.kind = "block"}; }

LinearOptions Mx() { return {.kind = "mx"}; }

LinearOptions RowWise() { return {.kind = "row-wise-gw-hp"}; }

// Gaudi's float8, whose E4M3 ends at 240, in windows of one micro-batch.
LinearOptions Fishman() {
  LinearOptions options{.kind = "e5m2-backward", .format = "e4m3"};
  options.gradient_rounding.mode = RoundingMode::kStochastic;
  options.delayed = DelayedScalingOptions{.history = 1, .algorithm = AmaxAlgorithm::kWindow};
  return options;
}

// clang-format off
constexpr RecipeRow kRecipeRows[] = {
    {{"bf16",           "every linear layer in bf16"}, Standard},
    {{"fp8-delayed",    "[TransformerEngine] DelayedScaling: E4M3, gradients in E5M2, a scale per tensor from the largest of 1024 steps"}, Delayed},
    {{"fp8-current",    "[TransformerEngine] Float8CurrentScaling: the same with the scale of the tensor itself"}, Current},
    {{"fp8-block",      "[TransformerEngine] Float8BlockScaling: E4M3 with scales per 128 elements and per 128 x 128 weights"}, Block},
    {{"fp8-mx",         "[TransformerEngine] MXFP8BlockScaling: E4M3 with E8M0 scales per 32 elements"}, Mx},
    {{"fp8-row-wise",   "[torchao] rowwise_with_gw_hp: E4M3 with scales per row, weight gradients in bf16"}, RowWise},
    {{"fp8-delayed-w3-bf16", "fp8-delayed with the input of the MLP's last layer in bf16: [Fishman] Figure 3"}, Delayed, "*.mlp.down"},
    {{"fp8-delayed-smooth",  "fp8-delayed with Smooth-SwiGLU per channel: [Fishman] Equation 3"}, Delayed, {}, MlpKind::kSmoothSwiglu},
    {{"fp8-fishman",    "reference code of [Fishman]: E4M3 up to 240, E5M2 copies for the backward pass, stochastic gradients, power-of-two scales of the step before"}, Fishman},
    {{"fp8-fishman-smooth",  "fp8-fishman with the code's Smooth-SwiGLU, per token"}, Fishman, {}, MlpKind::kSmoothSwigluToken},
};
// clang-format on

constexpr auto kTrainRecipes = [] {
  std::array<TrainRecipe, std::size(kRecipeRows)> recipes;
  for (size_t i = 0; i < recipes.size(); ++i) recipes[i] = kRecipeRows[i].recipe;
  return recipes;
}();

}  // namespace

std::span<const TrainRecipe> TrainRecipes() { return kTrainRecipes; }

void ApplyTrainRecipe(std::string_view name, TrainConfig& config) {
  std::string valid;
  for (const RecipeRow& row : kRecipeRows) {
    if (row.recipe.name != name) {
      valid += fmt::format("{}{}", valid.empty() ? "" : ", ", row.recipe.name);
      continue;
    }
    config.linear = {.all = row.linear(), .first_last_high = true};
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
