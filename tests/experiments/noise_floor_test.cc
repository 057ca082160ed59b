// The experiment `noise-floor`: arms, trainings, and tables from hand-made results.
#include "experiments/noise_floor/noise_floor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::noise_floor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  Overrides all = TinyRun("noise-floor");
  for (const auto& [option, value] : overrides) all[option] = value;
  return MakeSettings(NoiseFloor(), "quick", 0, seeds, all);
}

std::string ErrorWith(const Overrides& overrides) {
  return ErrorOf([&] { NoiseFloor().trials(SettingsWith(overrides)); });
}

TEST(NoiseFloor, HasABaselineThenNudgesThenOtherArithmetic) {
  std::vector<std::string> labels;
  for (const Trial& trial : NoiseFloor().trials(SettingsWith({{"nudge-steps", "0,3"}}))) {
    labels.push_back(trial.label);
  }
  EXPECT_THAT(labels,
              ElementsAre("2x16 lr 3e-3 none seed=0",
                          "2x16 lr 3e-3 ulp@0/1 seed=0",
                          "2x16 lr 3e-3 ulp@0/2 seed=0",
                          "2x16 lr 3e-3 ulp@3/1 seed=0",
                          "2x16 lr 3e-3 ulp@3/2 seed=0",
                          "2x16 lr 3e-3 bf16 seed=0"));
  const TrainConfig config =
      study::ConfigOf(NoiseFloorStudy(), SettingsWith({}), {"2x16", "3e-3", "ulp@3/2"}, 0);
  EXPECT_EQ(config.stress.nudge_step, 3u);
  EXPECT_EQ(config.stress.nudge_draw, 2u);
}

TEST(NoiseFloor, RefusesWhatIsNoChange) {
  for (const char* const wrong : {"ulp@3", "ulp@/1", "ulp@3/", "ulp@-1/2", "bf17", "ulp@3/2/1"}) {
    EXPECT_THAT(ErrorWith({{"changes", wrong}}), HasSubstr("--changes")) << wrong;
  }
  EXPECT_THAT(ErrorWith({{"nudge-steps", "10"}}), HasSubstr("--nudge-steps"));  // of 10 steps
  EXPECT_THAT(ErrorWith({{"draws", "0"}}), HasSubstr("--draws"));
}

TEST(NoiseFloor, TrainingsPartAfterTheirNudge) {
  const Settings settings = SettingsWith({{"nudge-steps", "4"}, {"changes", "none"}});
  std::map<std::string, std::vector<double>> curves;
  for (const Trial& trial : NoiseFloor().trials(settings)) {
    const Rows rows = NoiseFloor().run(settings, trial);
    for (const Row& row : rows.at("curves")) {
      curves[trial.parameters.at("change")].push_back(std::stod(row.back().Text()));
    }
  }
  const std::vector<double>& none = curves.at("none");
  for (const char* const change : {"ulp@4/1", "ulp@4/2"}) {
    const std::vector<double>& nudged = curves.at(change);
    ASSERT_EQ(nudged.size(), none.size());
    for (size_t i = 0; i <= 4; ++i) EXPECT_EQ(nudged[i], none[i]) << change << i;
    EXPECT_NE(nudged.back(), none.back()) << change;
    EXPECT_NEAR(nudged.back(), none.back(), 1e-3) << change;
  }
}

// ---- tables

class NoiseFloorTables : public ::testing::Test {
 protected:
  void Run(const std::string& change, int seed, double loss, const std::vector<double>& curve) {
    const std::map<std::string, Cell> key = {
        {"size", "2x64"}, {"lr", 0.003}, {"change", change}, {"seed", seed}};
    std::map<std::string, Cell> run = key;
    run.insert({{"status", std::isfinite(loss) ? "finished" : "diverged"},
                {"steps", 300},
                {"parameters", 140000},
                {"start_loss", 5.5},
                {"train_loss", loss},
                {"valid_loss", loss}});
    results_.Add("runs", run);
    int step = 0;
    for (const double x : curve) {
      std::map<std::string, Cell> row = key;
      row.insert({{"step", step++}, {"loss", x}});
      results_.Add("curves", row);
    }
  }

  ResultTables results_{NoiseFloor(), {}, 2};
};

TEST_F(NoiseFloorTables, FloorHasTheDistributionOfDifferences) {
  Run("none", 0, 2.0, {5, 4, 3, 2});
  Run("none", 1, 2.2, {5, 4, 3, 2});
  Run("ulp@0/1", 0, 2.03, {5, 4, 3.001, 2.05});
  Run("ulp@0/1", 1, 2.19, {5, 4, 3.001, 1.95});
  Run("ulp@0/2", 0, 1.99, {5, 4, 2.999, 2.05});
  Run("ulp@0/2", 1, INFINITY, {5, 4});
  Run("bf16", 0, 2.1, {5, 4.06, 3.1, 2.1});
  Run("bf16", 1, 2.3, {5, 4.06, 3.1, 2.1});
  const Frame floor = results_.Of("floor");
  ASSERT_EQ(floor.Size(), 2u);
  const Frame nudged = floor.Where("change", std::string("ulp@0"));
  EXPECT_EQ(nudged.Number("seeds"), 2);
  EXPECT_EQ(nudged.Number("pairs"), 3);
  EXPECT_EQ(nudged.Number("lost"), 1);
  // Seed 0 has +0.03 and -0.01, seed 1 has -0.01.
  EXPECT_NEAR(nudged.Number("mean"), 0, 1e-12);
  EXPECT_NEAR(nudged.Number("deviation"), 0.0230940107675850, 1e-12);
  EXPECT_NEAR(nudged.Number("abs_50"), 0.01, 1e-12);
  EXPECT_NEAR(nudged.Number("abs_largest"), 0.03, 1e-12);
  EXPECT_NEAR(nudged.Number("over_seeds"), 0.2 / std::sqrt(2), 1e-12);
  EXPECT_EQ(nudged.Number("parted"), 3);  // 0.05 at the end; 0.001 before
  const Frame bf16 = floor.Where("change", std::string("bf16"));
  EXPECT_NEAR(bf16.Number("mean"), 0.1, 1e-12);
  EXPECT_NEAR(bf16.Number("deviation"), 0, 1e-12);
  EXPECT_EQ(bf16.Number("parted"), 1);  // 0.06 is more than half of 0.1
  const Frame spread = results_.Of("spread").Where("change", std::string("ulp@0"));
  EXPECT_THAT(spread.Numbers("pairs"), ElementsAre(4, 4, 3, 3));
  EXPECT_NEAR(spread.Numbers("rms")[2], 0.001, 1e-12);
  EXPECT_NEAR(spread.Numbers("rms")[3], 0.05, 1e-12);
}

// Equivalence tests on drawn differences say "matches" as often as the margin promises.
TEST(CarriedMargin, IsWhatAnEquivalenceTestNeeds) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0.02);
  constexpr int kTests = 20000;
  const std::map<int, double> quantiles = {{5, 2.131846786}, {10, 1.833112933}};  // t at 0.95
  for (const auto& [seeds, t] : quantiles) {
    const double margin = CarriedMargin(0.02, seeds);
    int matches = 0;
    for (int test = 0; test < kTests; ++test) {
      double sum = 0, squares = 0;
      for (int i = 0; i < seeds; ++i) {
        const double x = normal(random);
        sum += x;
        squares += x * x;
      }
      const double mean = sum / seeds;
      const double error = std::sqrt((squares - sum * mean) / (seeds - 1) / seeds);
      matches += std::fabs(mean) + t * error < margin ? 1 : 0;
    }
    EXPECT_NEAR(matches / static_cast<double>(kTests), 0.8, 0.03) << seeds;
  }
}

}  // namespace
}  // namespace numsim::experiments::noise_floor
