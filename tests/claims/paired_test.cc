// Estimates of contrasts from their values over seeds.
#include "experiments/claims/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/claims/simulated_table.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using Values = std::vector<double>;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

TEST(EstimateContrast, OfTwoArmsIsThePairedTest) {
  const Values values = {1, 2, 4, 7, 2, 2, 7, 8};  // gaps 1, 0, 3, 1
  const ContrastEstimate gap = EstimateContrast(values, 4, Values{-1, 1});
  EXPECT_NEAR(gap.value, 1.25, 1e-14);
  EXPECT_NEAR(gap.standard_error, std::sqrt(4.75 / 3 / 4), 1e-14);
  EXPECT_EQ(gap.freedom, 3);
}

TEST(EstimateContrast, WeighsItsArms) {
  const Values values = {1, 4, 4, 3, 5, 10, 2, 6, 1};  // 1 - 6 + 2, 4 - 10 + 6, 4 - 20 + 1
  const ContrastEstimate curvature = EstimateContrast(values, 3, Values{1, -2, 1});
  EXPECT_NEAR(curvature.value, -18 / 3., 1e-14);
  EXPECT_NEAR(curvature.standard_error, std::sqrt((9 + 36 + 81) / 2. / 3), 1e-14);
  EXPECT_EQ(curvature.freedom, 2);
}

TEST(EstimateContrast, UsesTheSeedsAtWhichNoArmOfItIsMissing) {
  const Values values = {1, kMissing, 4, 7, 2, 2, HUGE_VAL, 9, kMissing, kMissing, kMissing, 8};
  EXPECT_EQ(OverSeeds(values, 4, Values{-1, 1, 0}), (Values{1, 2}));
  EXPECT_EQ(EstimateContrast(values, 4, Values{-1, 1, 0}).freedom, 1);
  const ContrastEstimate one = EstimateContrast(values, 4, Values{-1, 0, 1});
  EXPECT_EQ(one.value, 1);
  EXPECT_TRUE(std::isnan(one.standard_error));
  EXPECT_EQ(one.freedom, 0);
  EXPECT_TRUE(std::isnan(EstimateContrast(Values{kMissing, 1}, 1, Values{1, -1}).value));
}

// Sums of decimal fractions round; equal gaps have no scatter all the same.
TEST(EstimateContrast, TakesRoundingErrorsForNothing) {
  const Values values = {0.1, 0.3, 1e6, 0.6, 0.8, 1e6 + 0.5};
  const ContrastEstimate gap = EstimateContrast(values, 3, Values{-1, 1});
  EXPECT_NEAR(gap.value, 0.5, 1e-12);
  EXPECT_EQ(gap.standard_error, 0);
  const Values same = {0.1, 0.7, 0.1 + 1e-17, 0.7};
  EXPECT_EQ(EstimateContrast(same, 2, Values{-1, 1}).value, 0);
}

TEST(EstimateContrast, OfAnotherNumberOfOutcomesThrows) {
  EXPECT_NE(ErrorOf([] { EstimateContrast(Values{1, 2, 3}, 2, Values{1, -1}); }), kNoError);
}

// Half the width of the interval at 95 % over the standard error, by tables of Student's t.
double Quantile(int freedom) {
  return freedom == 2 ? 4.302653 : freedom == 4 ? 2.776445 : 2.262157;
}

// The table in paired.h: arms that scatter as all others, ten times more, and ten times less.
TEST(EstimateContrast, HoldsItsLevelWhateverOtherArmsDo) {
  constexpr int kTables = 4000;
  const std::vector<Values> scatters = {{1}, {1, 10, 1, 1}, {1, 1, 10, 1}, {0.1, 0.1, 1, 10}};
  for (const int seeds : {3, 5, 10}) {
    for (const Values& scatter : scatters) {
      const TrueEffects truth{{0, 0.7, -1, 4}, seeds, scatter};
      const double share = ShareOf(kTables, [&](uint64_t trial) {
        const OutcomeTable table = Simulated(truth, trial);
        const ContrastEstimate gap = EstimateContrast(table.values, seeds, Values{-1, 1, 0, 0});
        return std::abs(gap.value - 0.7) <= Quantile(seeds - 1) * gap.standard_error;
      });
      EXPECT_NEAR(share, 0.95, MonteCarloError(0.95, kTables)) << seeds;
    }
  }
}

}  // namespace
}  // namespace numsim::experiments
