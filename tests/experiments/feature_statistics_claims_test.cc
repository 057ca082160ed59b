// The claims of `feature-statistics`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/experiments/feature_statistics_fixture.h"

namespace numsim::experiments::feature_statistics {
namespace {

using ::testing::HasSubstr;

using Numbers = std::vector<double>;

class FeatureClaims : public ::testing::Test {
 protected:
  // Forecasts of one block of the tower `image`; `cells` replaces those of the columns it names.
  void Forecasts(std::string_view tensor, size_t seed, std::map<std::string, Cell> cells) {
    cells.insert({{"size", "2x16"},
                  {"layer_scale", "none"},
                  {"seed", seed},
                  {"tower", "image"},
                  {"block", 0},
                  {"tensor", std::string(tensor)},
                  {"steps", "after-warmup"},
                  {"forecast", "max"},
                  {"history", 1},
                  {"compared", 1000},
                  {"overruns", 0},
                  {"clipped", 0},
                  {"within_2", 1000}});
    results_.Add("maxima", cells);
  }
  // Changes of the maximum of a tensor from step to step, for seeds 0, 1, ...
  void Changes(std::string_view tensor,
               const Numbers& changes,
               const std::map<std::string, Cell>& others = {}) {
    for (size_t seed = 0; seed < changes.size(); ++seed) {
      std::map<std::string, Cell> cells = others;
      cells["change_95"] = changes[seed];
      Forecasts(tensor, seed, cells);
    }
  }
  // An operand that has 31 dB by its own maximum and loses these by the mean of 16, and ten by half of it, for
  // seeds 0, 1, ...
  void Scaled(std::string_view tensor,
              const Numbers& losses,
              const std::map<std::string, Cell>& others = {}) {
    for (size_t seed = 0; seed < losses.size(); ++seed) {
      std::map<std::string, Cell> cells = others;
      cells.insert({{"size", "2x16"},
                    {"layer_scale", "none"},
                    {"seed", seed},
                    {"tower", "image"},
                    {"block", 0},
                    {"tensor", std::string(tensor)},
                    {"history", 16},
                    {"compared", 24},
                    {"current", 31},
                    {"average", 31 - losses[seed]},
                    {"half", 21 + 0.1 * seed}});
      results_.Add("scaled", cells);
    }
  }
  // Outputs of the first and the last of 12 blocks at the end, for seeds 0, 1, ...
  void Outputs(const std::string& scale,
               const std::vector<std::pair<double, double>>& blocks,
               const std::string& size = "12x16") {
    for (size_t seed = 0; seed < blocks.size(); ++seed) {
      const int last = size == "12x16" ? 11 : 1;
      for (const auto& [block, value] :
           {std::pair{0, blocks[seed].first}, std::pair{last, blocks[seed].second}}) {
        for (const auto& [step, mean_abs] : {std::pair{0, 1.0}, std::pair{5, value}}) {
          results_.Add("features",
                       {{"size", size},
                        {"layer_scale", scale},
                        {"seed", seed},
                        {"step", step},
                        {"tower", "image"},
                        {"block", block},
                        {"tensor", "output"},
                        {"mean_abs", mean_abs}});
        }
      }
    }
  }
  void Clear() { results_ = ResultTables(FeatureStatistics(), kTiny); }
  std::string VerdictOf(const std::string& name) { return results_.VerdictOf(name); }

  ResultTables results_{FeatureStatistics(), kTiny};
};

// The tensors that each claim is about.
const std::vector<std::pair<std::string, std::vector<std::string_view>>> kTensorsOf = {
    {"inputs", {"mlp-first-x", "mlp-second-x"}},
    {"weights", {"mlp-first-w", "mlp-second-w"}},
    {"gradients", {"mlp-first-g", "mlp-second-g"}},
    {"features", {"output"}},
    {"weight-gradients", {"mlp-first-weight-gradient", "mlp-second-weight-gradient"}}};

TEST_F(FeatureClaims, SmoothnessIsJudgedByAFactorOfTwo) {
  const std::vector<std::pair<Numbers, std::string>> cases = {{{0.9, 0.88, 0.91}, "supported"},
                                                              {{1.1, 1.12, 1.09}, "contradicted"},
                                                              {{0.5, 1.3, 0.8}, "inconclusive"},
                                                              {{0.5}, "inconclusive"},
                                                              {{}, "not tested"}};
  for (const auto& [changes, verdict] : cases) {
    Clear();
    Changes("mlp-second-x", changes);
    Changes("mlp-first-weight-gradient", {3, 3.1, 2.9});  // the control
    EXPECT_EQ(VerdictOf("smooth-inputs"), verdict) << testing::PrintToString(changes);
  }
}

// All other tensors are smooth. That is evidence only where those that are the control are not.
TEST_F(FeatureClaims, ATensorThatJumpsContradictsItsOwnClaimAlone) {
  for (const auto& [group, tensors] : kTensorsOf) {
    for (const std::string_view jumping : tensors) {
      Clear();
      for (const BlockTensor& tensor : BlockTensors()) {
        const double change = tensor.name == jumping ? 2 : 0.1;
        Changes(tensor.name, {change, change, change});
      }
      for (const auto& [other, unused] : kTensorsOf) {
        const bool shown = group == "weight-gradients";
        EXPECT_EQ(VerdictOf("smooth-" + other),
                  other == group ? "contradicted"
                  : shown        ? "supported"
                                 : "not tested")
            << jumping << " " << other;
      }
    }
  }
}

TEST_F(FeatureClaims, BlocksAreAveragedAndTheWorstTowerCounts) {
  Changes("mlp-first-weight-gradient", {3, 3.1, 2.9});
  Changes("output", {0.5, 0.5, 0.5});
  Changes("output", {1.25, 1.25, 1.25}, {{"block", 1}});
  EXPECT_EQ(VerdictOf("smooth-features"), "supported");
  EXPECT_THAT(results_.ClaimOf("smooth-features").evidence.measured,
              HasSubstr("output: a factor of 1.834 at 95 %"));  // 2^0.875
  Changes("output", {1.5, 1.5, 1.5}, {{"tower", "text"}});
  EXPECT_EQ(VerdictOf("smooth-features"), "contradicted");
}

TEST_F(FeatureClaims, SmoothnessLooksAtSingleStepsAfterTheWarmup) {
  Changes("mlp-first-weight-gradient", {3, 3.1, 2.9});
  Changes("output", {0.5, 0.5, 0.5});
  Changes("output", {9, 9, 9}, {{"steps", "all"}});
  Changes("output", {9, 9, 9}, {{"history", 16}});
  Changes("output", {9, 9, 9}, {{"block", 1}, {"compared", 0}});
  EXPECT_EQ(VerdictOf("smooth-features"), "supported");
}

TEST_F(FeatureClaims, AMovingAverageMayLoseADecibel) {
  const std::vector<std::pair<Numbers, std::string>> cases = {{{0.8, 0.81, 0.79}, "supported"},
                                                              {{1.2, 1.21, 1.19}, "contradicted"},
                                                              {{0.2, 2, 0.9}, "inconclusive"},
                                                              {{}, "not tested"}};
  for (const std::string group : {"inputs", "weights", "gradients"}) {
    for (const auto& [losses, verdict] : cases) {
      Clear();
      for (const auto& [other, tensors] : kTensorsOf) {
        Scaled(tensors.back(), other == group ? losses : Numbers{5, 5, 5});
      }
      EXPECT_EQ(VerdictOf("moving-average-" + group), verdict) << testing::PrintToString(losses);
    }
  }
}

// Where even half of the average loses little, nothing could have failed.
TEST_F(FeatureClaims, AMovingAverageIsTestedWhereHalfOfItFails) {
  Scaled("mlp-first-x", {0.1, 0.11, 0.09}, {{"half", 30.5}});
  EXPECT_EQ(VerdictOf("moving-average-inputs"), "not tested");
  Clear();
  Scaled("mlp-first-x", {0.1, 0.11, 0.09}, {{"half", 29.5}});
  EXPECT_EQ(VerdictOf("moving-average-inputs"), "supported");
}

TEST_F(FeatureClaims, AMovingAverageIsJudgedByTheMeanOfBlocksAndTheWorstTower) {
  Scaled("mlp-first-g", {0.5, 0.5, 0.5});
  Scaled("mlp-first-g", {1.3, 1.3, 1.3}, {{"block", 1}});
  Scaled("mlp-first-g", {9, 9, 9}, {{"block", 2}, {"compared", 0}});
  Scaled("mlp-second-g", {-3, -3, -3});
  EXPECT_EQ(VerdictOf("moving-average-gradients"), "supported");
  const auto loss = [&] {
    return results_.ClaimOf("moving-average-gradients").result.contrasts.at(0).value;
  };
  EXPECT_NEAR(loss(), 0.9, 1e-12);
  Scaled("mlp-first-g", {1.5, 1.5, 1.5}, {{"tower", "text"}});
  EXPECT_EQ(VerdictOf("moving-average-gradients"), "contradicted");
  EXPECT_NEAR(loss(), 1.5, 1e-12);
}

// Published runs from before the measurement lack its table. That is no error.
TEST_F(FeatureClaims, ARunWithoutTheMeasurementDoesNotTestMovingAverages) {
  Scaled("mlp-first-x", {0.1, 0.1, 0.1});
  Tables tables = results_.Finish();
  tables.erase("scaled");
  for (const JudgedClaim& claim :
       Judge(results_.experiment().claims, results_.settings(), tables)) {
    if (claim.spec->id.find("moving-average") == std::string::npos) continue;
    EXPECT_EQ(ToString(claim.result.verdict), "not tested");
    EXPECT_THAT(claim.result.reason, HasSubstr("older than the measurement"));
  }
}

TEST_F(FeatureClaims, MagnitudesAreJudgedByAFactorOfTwo) {
  const std::vector<std::pair<Numbers, std::string>> cases = {{{5, 4.8, 5.1}, "supported"},
                                                              {{3, 3.1, 2.9}, "contradicted"},
                                                              {{2, 9, 4}, "inconclusive"},
                                                              {{5}, "inconclusive"}};
  for (const auto& [last, verdict] : cases) {
    Clear();
    std::vector<std::pair<double, double>> none, zero;
    for (const double one : last) {
      none.push_back({2, one});
      zero.push_back({1, 2});
    }
    Outputs("none", none);
    Outputs("0", zero);
    EXPECT_EQ(VerdictOf("large-in-later-blocks"), verdict) << testing::PrintToString(last);
    EXPECT_EQ(VerdictOf("zero-init-layer-scale"), verdict) << testing::PrintToString(last);
  }
}

TEST_F(FeatureClaims, MagnitudesAreThoseOfTheLastBlockInBinades) {
  Outputs("none", {{2, 32}, {2, 32}});
  Outputs("0", {{2, 4}, {2, 4}});
  Outputs("1e-04", {{2, 2}, {2, 2}});  // in no claim
  const JudgedClaim depth = results_.ClaimOf("large-in-later-blocks");
  ASSERT_EQ(depth.result.contrasts.size(), 1u);
  EXPECT_DOUBLE_EQ(depth.result.contrasts[0].value, 4);
  EXPECT_EQ(depth.evidence.contrasts[0][0].arm, "12x16 / image / 11");
  const JudgedClaim scale = results_.ClaimOf("zero-init-layer-scale");
  ASSERT_EQ(scale.result.contrasts.size(), 1u);
  EXPECT_DOUBLE_EQ(scale.result.contrasts[0].value, 3);
  EXPECT_EQ(scale.margin, 1);
}

TEST_F(FeatureClaims, DepthNeedsTwelveBlocksAndATrainingWithoutLayerScale) {
  Outputs("none", {{2, 9}, {2, 9}}, "2x16");
  Outputs("0", {{2, 2}, {2, 2}}, "2x16");
  EXPECT_EQ(VerdictOf("zero-init-layer-scale"), "supported");
  EXPECT_THAT(results_.ClaimOf("large-in-later-blocks").result.reason, HasSubstr("out of reach"));
  Outputs("none", {{2, 9}, {2, 9}});
  EXPECT_EQ(VerdictOf("large-in-later-blocks"), "supported");
  Clear();
  Outputs("0", {{2, 9}, {2, 9}});
  EXPECT_EQ(VerdictOf("large-in-later-blocks"), "not tested");
  EXPECT_EQ(VerdictOf("zero-init-layer-scale"), "not tested");
}

TEST_F(FeatureClaims, ATrainingThatDivergedForbidsAVerdict) {
  Outputs("none", {{2, 9}, {2, 9}, {2, 9}});
  Outputs("0", {{2, 2}, {2, 2}, {2, 2}});
  Changes("output", {0.5, 0.5, 0.5}, {{"size", "2x16"}});
  Changes("mlp-first-weight-gradient", {3, 3.1, 2.9}, {{"size", "4x16"}});
  for (const std::string size : {"2x16", "12x16"}) {
    results_.Add("final",
                 {{"size", size}, {"layer_scale", "none"}, {"seed", 1}, {"status", "diverged"}});
  }
  for (const char* const name :
       {"smooth-features", "large-in-later-blocks", "zero-init-layer-scale"}) {
    EXPECT_EQ(VerdictOf(name), "inconclusive") << name;
    EXPECT_THAT(results_.ClaimOf(name).result.reason, HasSubstr("diverged")) << name;
  }
}

TEST_F(FeatureClaims, NotesTellOfDelayedScaling) {
  Forecasts("mlp-first-g", 0, {{"history", 16}, {"clipped", 50}});
  results_.Add("final",
               {{"size", "2x16"}, {"layer_scale", "none"}, {"seed", 0}, {"train_loss", 1.5}});
  const std::string notes = FeatureStatistics().notes(results_.settings(), results_.Finish());
  EXPECT_THAT(notes, HasSubstr("2x16 with layer-scale none: 1.500."));
  EXPECT_THAT(notes, HasSubstr("the largest of 16 previous maxima"));
  EXPECT_THAT(notes, HasSubstr("mlp-first-g: 5.00 %"));
}

}  // namespace
}  // namespace numsim::experiments::feature_statistics
