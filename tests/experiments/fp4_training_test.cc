// The experiment `fp4-training`: arms are the recipes, and claims on hand-made losses.
#include "experiments/fp4_training/fp4_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/runner/settings.h"
#include "numsim/config/config.h"
#include "numsim/linear/linear_recipe.h"
#include "tests/experiments/result_tables.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

TrainConfig ConfigOfArm(const std::string& recipe, const std::string& preset = "paper") {
  const study::Study study = Fp4TrainingStudy();
  return ConfigOf(study, MakeSettings(Fp4Training(), preset, 0, 1, {}), {recipe}, 0);
}

std::map<std::string, std::string> LinearOf(const TrainConfig& config) {
  std::map<std::string, std::string> keys;
  for (const ConfigKey& key : ConfigKeys(config)) {
    if (key.name.starts_with("linear.")) keys[key.name] = key.value;
  }
  return keys;
}

TEST(Fp4Training, ArmsWithNamesOfRecipesAreTheRecipes) {
  size_t found = 0;
  const study::Study study = Fp4TrainingStudy();
  for (const study::Choice& choice : study.axes.front().choices) {
    for (const TrainRecipe& recipe : TrainRecipes()) {
      if (recipe.name != choice.name) continue;
      TrainConfig expected;
      ApplyTrainRecipe(recipe.name, expected);
      EXPECT_EQ(LinearOf(ConfigOfArm(choice.name)), LinearOf(expected)) << choice.name;
      ++found;
    }
  }
  EXPECT_EQ(found, 7u);
}

// An arm changes these keys of the recipe that it is made from, and no others.
TEST(Fp4Training, OtherArmsDifferInWhatTheirNamesSay) {
  using Keys = std::map<std::string, std::string>;
  const std::map<std::string, std::pair<std::string, Keys>> arms = {
      {"nvidia-high-last", {"nvidia-nvfp4", {{"linear.high_last", "0.15"}}}},
      {"nvidia-nearest", {"nvidia-nvfp4", {{"linear.gradient_rounding", "\"rne\""}}}},
      {"nvidia-no-hadamard", {"nvidia-nvfp4", {{"linear.hadamard", "\"\""}}}},
      {"nvidia-all-hadamard",
       {"nvidia-nvfp4", {{"linear.hadamard", "\"forward,input-gradient,weight-gradient\""}}}},
      {"ufp4-e2m1", {"ufp4", {{"linear.format", "\"e2m1fn\""}}}},
      {"ufp4-weight-gradient", {"ufp4", {{"linear.hadamard", "\"weight-gradient\""}}}},
      {"amd-random", {"amd-mxfp4", {{"linear.hadamard_signs", "\"redrawn\""}}}},
      {"amd-plain",
       {"amd-mxfp4", {{"linear.hadamard", "\"\""}, {"linear.hadamard_signs", "\"\""}}}},
      {"amd-stochastic", {"amd-plain", {{"linear.gradient_rounding", "\"sr\""}}}},
      {"amd-no-weight-gradient",
       {"amd-plain", {{"linear.high_operands", "\"weight-gradient.g,weight-gradient.x\""}}}},
      {"mxfp4-floor", {"amd-plain", {{"linear.scale_rule", "\"e8m0\""}}}},
      {"quartet-2-sr",
       {"quartet-2",
        {{"linear.gradient_rounding", "\"sr\""},
         {"linear.scale_rule", "\"4over6-mse,input-gradient=nvfp4,weight-gradient=nvfp4\""}}}}};
  for (const auto& [arm, made] : arms) {
    Keys expected = LinearOf(ConfigOfArm(made.first));
    for (const auto& [key, value] : made.second) expected[key] = value;
    EXPECT_EQ(LinearOf(ConfigOfArm(arm)), expected) << arm;
  }
}

// Inner dimensions are multiples of the transforms, and all arms of all claims are trained.
TEST(Fp4Training, TheStandardPresetTrainsAllArms) {
  const Experiment experiment = Fp4Training();
  const Settings settings = MakeSettings(experiment, "paper", 0, 1, {{"text-size", "131072"}});
  const std::vector<Trial> trials = experiment.trials(settings);
  EXPECT_EQ(trials.size(), Fp4TrainingStudy().axes.front().choices.size());
}

TEST(Fp4Training, AGpuRefusesTheRecipesByName) {
  for (const char* const recipe :
       {"nvidia-nvfp4", "four-over-six", "quartet-2", "ufp4", "amd-mxfp4"}) {
    EXPECT_NE(ErrorOf([&] { CheckOnDevice(MakeLinearRecipe(ConfigOfArm(recipe).linear.all)); }), "")
        << recipe;
  }
}

class Fp4TrainingClaims : public ::testing::Test {
 protected:
  void Train(const std::string& recipe, double loss) {
    for (const int seed : {0, 1, 2, 3}) {
      results_.Add("final",
                   {{"recipe", recipe},
                    {"seed", seed},
                    {"status", "finished"},
                    {"parameters", 900000},
                    {"chance_loss", 5.5},
                    {"start_loss", 5.6},
                    {"valid_loss", loss + 0.0001 * seed * (1 + loss)}});
    }
  }
  ResultTables results_{Fp4Training(), {}, 4};
};

TEST_F(Fp4TrainingClaims, ARecipeMatchesOnlyWhereTheKnownBadArmFails) {
  Train("bf16", 2);
  Train("ufp4", 2.005);
  Train("mxfp4-floor", 2.1);
  EXPECT_EQ(results_.VerdictOf("known-bad-fails"), "supported");
  EXPECT_EQ(results_.VerdictOf("ufp4-matches-bf16"), "supported");
  results_.Clear("final");
  Train("bf16", 2);
  Train("ufp4", 2.005);
  Train("mxfp4-floor", 2.005);
  EXPECT_EQ(results_.VerdictOf("known-bad-fails"), "contradicted");
  EXPECT_EQ(results_.VerdictOf("ufp4-matches-bf16"), "not tested");
}

// No recipe is taken to lose more than the known-bad arm; the margin is 0.02 at this size.
TEST_F(Fp4TrainingClaims, RecipesAreComparedOnlyWhereTheMarginIsHalfOfWhatIsPossible) {
  for (const auto& [bad, verdict] : {std::pair{2.05, "contradicted"}, {2.038, "not tested"}}) {
    results_.Clear("final");
    Train("bf16", 2);
    Train("nvidia-nvfp4", 2.02);
    Train("ufp4", 2.015);
    Train("mxfp4-floor", bad);
    EXPECT_EQ(results_.VerdictOf("ufp4-beats-nvfp4"), verdict) << bad;
  }
  EXPECT_THAT(results_.ClaimOf("ufp4-beats-nvfp4").result.reason,
              HasSubstr("allows an effect of 0.038 nats per token, and the margin is 0.02"));
  results_.Clear("final");
  Train("bf16", 2);
  Train("nvidia-nvfp4", 2.05);
  Train("ufp4", 2);
  EXPECT_THAT(results_.ClaimOf("ufp4-beats-nvfp4").result.reason,
              HasSubstr("was not trained: mxfp4-floor"));
}

TEST_F(Fp4TrainingClaims, AFifthOfTheGapIsCountedFromBf16) {
  for (const auto& [quartet, verdict] : {std::pair{2.07, "supported"}, {2.085, "contradicted"}}) {
    results_.Clear("final");
    Train("bf16", 2);
    Train("nvidia-nvfp4", 2.1);
    Train("quartet-2", quartet);
    EXPECT_EQ(results_.VerdictOf("quartet-closes-a-fifth"), verdict) << quartet;
  }
}

TEST_F(Fp4TrainingClaims, GapsAreToBf16) {
  Train("bf16", 2);
  Train("ufp4", 2.25);
  const Frame gaps = results_.Of("gaps").Where("recipe", std::string("ufp4"));
  EXPECT_NEAR(gaps.Number("gap"), 0.25, 1e-3);
  EXPECT_EQ(gaps.Number("seeds"), 4);
  EXPECT_LT(gaps.Number("gap_low"), gaps.Number("gap"));
  EXPECT_EQ(results_.Of("gaps").Where("recipe", std::string("bf16")).Number("gap"), 0);
}

TEST_F(Fp4TrainingClaims, NamesTheArmThatWasNotTrained) {
  Train("bf16", 2);
  EXPECT_THAT(results_.ClaimOf("known-bad-fails").result.reason,
              HasSubstr("was not trained: mxfp4-floor"));
}

}  // namespace
}  // namespace numsim::experiments
