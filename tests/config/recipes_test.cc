// The recipes of whole models: what each sets, and what takes precedence over it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

TrainConfig ParseToml(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  return ParseTrainConfig(toml, "a.toml", {}, overrides);
}

TrainConfig Recipe(const std::string& name) { return ParseToml("recipe = \"" + name + "\"\n"); }

LinearRecipe Layer(const TrainConfig& config, const char* name, bool edge = false) {
  LinearOptions storage;
  return MakeLinearRecipe(PrecisionOf(config.linear, name, edge, storage));
}

TEST(Recipes, EachIsAConfigurationWithEdgesInBf16) {
  for (const TrainRecipe& recipe : TrainRecipes()) {
    const TrainConfig config = Recipe(std::string(recipe.name));
    EXPECT_EQ(Layer(config, "head", true).kind, "standard") << recipe.name;
    EXPECT_EQ(Layer(config, "head", true).high_precision.name, "bf16") << recipe.name;
  }
}

TEST(Recipes, DelayedIsTransformerEngines) {
  const LinearRecipe layer = Layer(Recipe("fp8-delayed"), "blocks.0.mlp.down");
  EXPECT_EQ(layer.kind, "te-hybrid");
  EXPECT_EQ(layer.delayed, (DelayedScalingOptions{1024, AmaxAlgorithm::kMax, 0}));
  EXPECT_EQ(layer[LinearOperand::kForwardX].format.name, "e4m3fn");
  EXPECT_EQ(layer[LinearOperand::kInputGradientG].format.name, "e5m2");
  EXPECT_FALSE(Layer(Recipe("fp8-current"), "x").delayed.has_value());
}

TEST(Recipes, FishmanIsTheCodesAndNotThePapers) {
  const TrainConfig config = Recipe("fp8-fishman");
  const LinearRecipe layer = Layer(config, "blocks.0.mlp.down");
  EXPECT_EQ(layer[LinearOperand::kForwardX].format.name, "e4m3");
  for (LinearOperand operand : {LinearOperand::kInputGradientW,
                                LinearOperand::kInputGradientG,
                                LinearOperand::kWeightGradientX}) {
    EXPECT_EQ(layer[operand].format.name, "e5m2");
  }
  EXPECT_EQ(layer[LinearOperand::kInputGradientG].rounding.mode, RoundingMode::kStochastic);
  EXPECT_EQ(layer[LinearOperand::kInputGradientW].rounding.mode, RoundingMode::kNearestEven);
  EXPECT_EQ(layer.delayed->algorithm, AmaxAlgorithm::kWindow);
  EXPECT_EQ(layer.delayed->rule, ScaleRule::kPow2Floor);
  EXPECT_EQ(config.model.mlp, MlpKind::kSwiglu);
  EXPECT_EQ(Recipe("fp8-fishman-smooth").model.mlp, MlpKind::kSmoothSwigluToken);
}

TEST(Recipes, Figure3KeepsTheProductOfSwigluInBf16) {
  const TrainConfig config = Recipe("fp8-delayed-w3-bf16");
  const LinearRecipe down = Layer(config, "blocks.3.mlp.down");
  EXPECT_EQ(down[LinearOperand::kForwardX].format.name, "bf16");
  EXPECT_EQ(down[LinearOperand::kWeightGradientX].format.name, "bf16");
  EXPECT_EQ(down[LinearOperand::kForwardW].format.name, "e4m3fn");
  EXPECT_EQ(Layer(config, "blocks.3.mlp.gate_up")[LinearOperand::kForwardX].format.name, "e4m3fn");
}

TEST(Recipes, KeysOfTheFileAndTheCommandLineComeAfter) {
  const TrainConfig config = ParseToml(
      "recipe = \"fp8-delayed\"\n"
      "[linear]\ndelayed_history = 16\n"
      "[[linear.override]]\nlayers = \"*.attention.*\"\nkind = \"te-hybrid\"\nhigh_operands = "
      "\"g\"\n",
      {"linear.first_last_high=false"});
  EXPECT_EQ(config.linear.all.delayed->history, 16u);
  EXPECT_EQ(config.linear.overrides.size(), 1u);
  EXPECT_FALSE(config.linear.first_last_high);
}

TEST(Recipes, ComeAfterThePreset) {
  const TrainConfig config = ParseToml("preset = \"tiny\"\n", {"recipe=fp8-current"});
  EXPECT_EQ(config.linear.all.kind, "te-hybrid");
  EXPECT_EQ(config.linear.all.high_precision, "");  // tiny's fp32 is gone
  EXPECT_EQ(config.model.width, 32u);
}

TEST(Recipes, AFileThatIsWrittenNeedsNone) {
  const TrainConfig config = Recipe("fp8-delayed-w3-bf16");
  EXPECT_EQ(WriteTrainConfig(ParseToml(WriteTrainConfig(config))), WriteTrainConfig(config));
}

TEST(Recipes, ErrorsNameTheNearest) {
  EXPECT_THAT(ErrorOf([] { ParseToml("recipe = \"fp8-delay\"\n"); }),
              testing::AllOf(HasSubstr("a.toml:1: recipe"), HasSubstr("fp8-delayed")));
  EXPECT_THAT(ErrorOf([] { ParseToml("recipe = 3\n"); }), HasSubstr("a.toml:1: recipe"));
  TrainConfig config;
  EXPECT_THAT(ErrorOf([&] { SetConfigKeys({"recipe=bf16"}, config); }), HasSubstr("numsim train"));
}

}  // namespace
}  // namespace numsim
