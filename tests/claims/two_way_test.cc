#include "experiments/claims/two_way.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// The same model as a regression on one indicator variable per arm and per seed, solved by a
// complete orthogonal decomposition of the design matrix.
struct DummyRegression {
  Eigen::VectorXd effects;     // arms, then seeds: the solution of least norm
  Eigen::MatrixXd covariance;  // in units of the residual variance
  double squares = 0;
  int freedom = 0;

  DummyRegression(const std::vector<double>& values, int arms, int seeds) {
    std::vector<int> present;
    for (int i = 0; i < arms * seeds; ++i) {
      if (std::isfinite(values[i])) present.push_back(i);
    }
    const int runs = static_cast<int>(present.size());
    Eigen::MatrixXd design = Eigen::MatrixXd::Zero(runs, arms + seeds);
    Eigen::VectorXd outcomes(runs);
    for (int row = 0; row < runs; ++row) {
      design(row, present[row] / seeds) = 1;
      design(row, arms + present[row] % seeds) = 1;
      outcomes(row) = values[present[row]];
    }
    const Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> solver(design);
    effects = solver.solve(outcomes);
    squares = (outcomes - design * effects).squaredNorm();
    freedom = runs - static_cast<int>(solver.rank());
    const Eigen::MatrixXd inverse = solver.pseudoInverse();
    covariance = inverse * inverse.transpose();
  }

  ContrastEstimate Contrast(const std::vector<double>& weights) const {
    Eigen::VectorXd w = Eigen::VectorXd::Zero(effects.size());
    for (size_t i = 0; i < weights.size(); ++i) w(static_cast<int>(i)) = weights[i];
    return {w.dot(effects), std::sqrt(squares / freedom * w.dot(covariance * w)), freedom};
  }
};

std::vector<double> RandomTable(int arms, int seeds, uint64_t trial, double missing_share) {
  std::vector<float> noise(arms * seeds), choice(arms * seeds);
  FillNormal({.seed = 3, .stream = trial}, 0, noise);
  Fill(Distribution::kUniform, {.seed = 4, .stream = trial}, 0, choice);
  std::vector<double> values;
  for (int i = 0; i < arms * seeds; ++i) {
    const double uniform = 0.5 + choice[i] / std::sqrt(12.0);
    values.push_back(uniform < missing_share ? kMissing
                                             : 5 + 0.3 * (i / seeds) + i % seeds + noise[i]);
  }
  return values;
}

TEST(TwoWayFit, OfACompleteTableIsTheAnalysisOfVariance) {
  const std::vector<double> values = {1, 4, 4, 3, 5, 10, 2, 6, 1};
  const TwoWayFit fit(values, 3, 3);
  // Arms have the means 3, 6, 3 and seeds 2, 5, 5, all runs 4: residuals 0, 0, 0; -1, -2, 3; 1, 2,
  // -3 squared sum to 28.
  EXPECT_EQ(fit.Freedom(), 4);
  EXPECT_NEAR(fit.ResidualVariance(), 28 / 4., 1e-13);
  const ContrastEstimate difference = fit.Contrast(std::vector<double>{-1, 1, 0});
  EXPECT_NEAR(difference.value, 3, 1e-14);
  EXPECT_NEAR(difference.standard_error, std::sqrt(28 / 4. * 2 / 3), 1e-13);
  EXPECT_EQ(difference.freedom, 4);
  const ContrastEstimate curvature = fit.Contrast(std::vector<double>{1, -2, 1});
  EXPECT_NEAR(curvature.value, -6, 1e-14);
  EXPECT_NEAR(curvature.standard_error, std::sqrt(28 / 4. * 6 / 3), 1e-13);
}

TEST(TwoWayFit, OfTwoArmsIsThePairedTest) {
  const std::vector<double> values = {1, 2, 4, 7, 2, 2, 7, 8};  // gaps 1, 0, 3, 1
  const TwoWayFit fit(values, 2, 4);
  const ContrastEstimate gap = fit.Contrast(std::vector<double>{-1, 1});
  EXPECT_NEAR(gap.value, 1.25, 1e-14);
  EXPECT_NEAR(gap.standard_error, std::sqrt(4.75 / 3 / 4), 1e-14);
  EXPECT_EQ(gap.freedom, 3);
}

TEST(TwoWayFit, WithMissingRunsIsTheRegressionOnIndicators) {
  int compared = 0;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const int arms = 2 + static_cast<int>(trial % 5), seeds = 2 + static_cast<int>(trial / 5 % 6);
    const std::vector<double> values = RandomTable(arms, seeds, trial, 0.1 * (trial % 4));
    const TwoWayFit fit(values, arms, seeds);
    const DummyRegression expected(values, arms, seeds);
    ASSERT_EQ(fit.Freedom(), expected.freedom) << trial;
    if (fit.Freedom() == 0) continue;
    EXPECT_NEAR(fit.ResidualVariance() * fit.Freedom(), expected.squares, 1e-11) << trial;
    std::vector<double> weights(arms, 0.);
    weights[0] = -1.5;
    weights[arms - 1] = 1;
    weights[arms / 2] += 0.5;
    const ContrastEstimate contrast = fit.Contrast(weights);
    if (std::isnan(contrast.value)) continue;
    const ContrastEstimate other = expected.Contrast(weights);
    EXPECT_NEAR(contrast.value, other.value, 1e-11) << trial;
    EXPECT_NEAR(contrast.standard_error, other.standard_error, 1e-11) << trial;
    ++compared;
  }
  EXPECT_GT(compared, 120);
}

// Arms 0 and 1 share seeds 0 and 1, arms 2 and 3 share seeds 2 and 3, arm 4 has no run.
TEST(TwoWayFit, ComparesOnlyWithinAConnectedPart) {
  const std::vector<double> values = {
      1, 3, kMissing, kMissing, 2, 5,  kMissing, kMissing, kMissing, kMissing,
      7, 8, kMissing, kMissing, 9, 11, kMissing, kMissing, kMissing, kMissing};
  const TwoWayFit fit(values, 5, 4);
  EXPECT_EQ(fit.Freedom(), 2);  // 8 runs - 4 arms - 4 seeds + 2 parts
  EXPECT_EQ(fit.ArmsWithRuns(), 4);
  EXPECT_EQ(fit.Runs(2), 2);
  EXPECT_EQ(fit.Runs(4), 0);
  EXPECT_NEAR(fit.Contrast(std::vector<double>{-1, 1, 0, 0, 0}).value, 1.5, 1e-14);
  EXPECT_NEAR(fit.Contrast(std::vector<double>{-1, 1, 1, -1, 0}).value, -1, 1e-14);
  for (const std::vector<double>& weights : {std::vector<double>{-1, 0, 1, 0, 0},
                                             std::vector<double>{1, 0, 0, 0, -1},
                                             std::vector<double>{0, 0, 0, 0, 1},
                                             std::vector<double>{1, 0, 0, 0, 0}}) {
    const ContrastEstimate contrast = fit.Contrast(weights);
    EXPECT_TRUE(std::isnan(contrast.value));
    EXPECT_TRUE(std::isnan(contrast.standard_error));
  }
}

TEST(TwoWayFit, OfOneSeedHasNoStandardError) {
  const TwoWayFit fit(std::vector<double>{1, 2, 4}, 3, 1);
  EXPECT_EQ(fit.Freedom(), 0);
  EXPECT_TRUE(std::isnan(fit.ResidualVariance()));
  const ContrastEstimate gap = fit.Contrast(std::vector<double>{-1, 0, 1});
  EXPECT_NEAR(gap.value, 3, 1e-14);
  EXPECT_TRUE(std::isnan(gap.standard_error));
}

TEST(TwoWayFit, OfNothingHasNoEstimates) {
  EXPECT_EQ(TwoWayFit({}, 0, 0).Freedom(), 0);
  const TwoWayFit fit(std::vector<double>(6, kMissing), 2, 3);
  EXPECT_EQ(fit.Freedom(), 0);
  EXPECT_TRUE(std::isnan(fit.Contrast(std::vector<double>{1, -1}).value));
  EXPECT_TRUE(std::isnan(fit.OwnContrast(std::vector<double>{1, -1}).value));
}

// Sums of these decimal fractions round differently in each cell.
TEST(TwoWayFit, WithoutScatterHasStandardErrorZero) {
  std::vector<double> values;
  for (const double arm : {0.1, 0.1, 0.7}) {
    for (const double seed : {0.3, 1.7, 2.9, 0.01}) values.push_back(arm + seed);
  }
  const TwoWayFit fit(values, 3, 4);
  EXPECT_EQ(fit.ResidualVariance(), 0);
  EXPECT_EQ(fit.Contrast(std::vector<double>{1, -1, 0}).value, 0);
  EXPECT_NEAR(fit.Contrast(std::vector<double>{0, -1, 1}).value, 0.6, 1e-14);
  EXPECT_EQ(fit.Contrast(std::vector<double>{0, -1, 1}).standard_error, 0);
  EXPECT_EQ(fit.SpreadTail(std::vector<double>{0, -1, 1}), 1);
}

TEST(TwoWayFit, IgnoresInfinities) {
  std::vector<double> values = RandomTable(3, 4, 1, 0);
  values[5] = kMissing;
  const TwoWayFit expected(values, 3, 4);
  values[5] = -std::numeric_limits<double>::infinity();
  const TwoWayFit fit(values, 3, 4);
  EXPECT_EQ(fit.ResidualVariance(), expected.ResidualVariance());
  EXPECT_EQ(fit.Runs(1), 3);
}

TEST(TwoWayFit, OwnContrastIsTheMeanOverSeedsThatHaveAllItsArms) {
  const std::vector<double> values = {1, 2, 4, 7, 2, kMissing, 7, 9, kMissing, 3, 3, 3};
  const TwoWayFit fit(values, 3, 4);
  const ContrastEstimate own = fit.OwnContrast(std::vector<double>{-1, 1, 0});  // gaps 1, 3, 2
  EXPECT_NEAR(own.value, 2, 1e-14);
  EXPECT_NEAR(own.standard_error, std::sqrt(1 / 3.), 1e-14);
  EXPECT_EQ(own.freedom, 2);
  const ContrastEstimate curvature = fit.OwnContrast(std::vector<double>{1, -2, 1});
  EXPECT_NEAR(curvature.value, (-7 - 8) / 2., 1e-14);  // seeds 2 and 3
  EXPECT_EQ(curvature.freedom, 1);
}

// Residuals 0, 0, 0; -1, -2, 3; 1, 2, -3: the gap of the last two arms has all of the scatter, that
// of the first two a quarter of it (1 + 4 + 9 halved, 7 of 28).
TEST(TwoWayFit, SpreadTailIsAnFTestOfTheContrastAgainstTheRest) {
  const TwoWayFit fit(std::vector<double>{1, 4, 4, 3, 5, 10, 2, 6, 1}, 3, 3);
  EXPECT_LT(fit.SpreadTail(std::vector<double>{0, 1, -1}), 1e-12);
  // F = (7 / 2) / (21 / 2) = 1/3 with 2 and 2 degrees of freedom: 1 / (1 + F).
  EXPECT_NEAR(fit.SpreadTail(std::vector<double>{1, -1, 0}), 0.75, 1e-13);
  EXPECT_NEAR(fit.SpreadTail(std::vector<double>{10, -10, 0}), 0.75, 1e-13);
  const TwoWayFit two_arms(std::vector<double>{1, 4, 4, 3, 5, 10}, 2, 3);
  EXPECT_EQ(two_arms.SpreadTail(std::vector<double>{1, -1}), 1);
}

TEST(TwoWayFit, SpreadTailIsUniformIfAllVariancesAreEqual) {
  constexpr int kTrials = 4000;
  int below_tenth = 0, below_half = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values = RandomTable(4, 5, 1000 + trial, 0);
    values[7] = values[18] = kMissing;
    const double tail = TwoWayFit(values, 4, 5).SpreadTail(std::vector<double>{1, -1, 0, 0});
    below_tenth += tail < 0.1;
    below_half += tail < 0.5;
  }
  EXPECT_NEAR(below_tenth, 0.1 * kTrials, 3.5 * std::sqrt(0.09 * kTrials));
  EXPECT_NEAR(below_half, 0.5 * kTrials, 3.5 * std::sqrt(0.25 * kTrials));
}

TEST(TwoWayFit, WrongSizesThrow) {
  EXPECT_EQ(ErrorOf([] {
              TwoWayFit(std::vector<double>{1, 2, 3}, 2, 2);
            }),
            "TwoWayFit: 'values' has 3 elements, expected 4");
  const TwoWayFit fit(std::vector<double>{1, 2, 3, 5}, 2, 2);
  EXPECT_EQ(ErrorOf([&] { fit.Contrast(std::vector<double>{1}); }),
            "TwoWayFit::Contrast: 'weights' has 1 elements, expected 2");
}

}  // namespace
}  // namespace numsim::experiments
