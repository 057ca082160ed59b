#include "numsim/stats/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numsim/random/distributions.h"

namespace numsim {
namespace {

std::vector<double> Draws(Distribution distribution, uint64_t stream, size_t n) {
  std::vector<float> draws(n);
  Fill(distribution, {.seed = 5, .stream = stream}, 0, draws);
  return {draws.begin(), draws.end()};
}

Moments MomentsOf(const std::vector<double>& sample) {
  Moments moments;
  for (double x : sample) moments.Add(x);
  return moments;
}

// Sums of powers of the deviation from the mean, in two passes.
struct TwoPass {
  long double n, mean = 0, m2 = 0, m4 = 0;

  explicit TwoPass(const std::vector<double>& sample) : n(sample.size()) {
    for (double x : sample) mean += x;
    mean /= n;
    for (double x : sample) {
      const long double d = x - mean;
      m2 += d * d;
      m4 += d * d * d * d;
    }
  }
};

void ExpectClose(double got, long double want, double relative) {
  EXPECT_NEAR(got, static_cast<double>(want), relative * std::abs(static_cast<double>(want)));
}

void ExpectTwoPassResults(const std::vector<double>& sample, double relative) {
  const Moments moments = MomentsOf(sample);
  const TwoPass want(sample);
  EXPECT_EQ(moments.Count(), sample.size());
  ExpectClose(moments.Mean(), want.mean, relative);
  ExpectClose(moments.Variance(), want.m2 / (want.n - 1), relative);
  ExpectClose(moments.Kurtosis(), want.n * want.m4 / (want.m2 * want.m2), relative);
  ExpectClose(moments.MeanError(), std::sqrt(want.m2 / (want.n - 1) / want.n), relative);
}

TEST(Moments, EqualTheTwoPassFormulas) {
  ExpectTwoPassResults({1, 2}, 1e-14);
  ExpectTwoPassResults({1, 2, 4}, 1e-14);
  ExpectTwoPassResults({-3, 1e-3, 7, 7, 2.5, -1e3}, 1e-13);
  for (const char* name : {"normal", "uniform", "laplace", "student-t3"}) {
    std::vector<double> sample = Draws(ParseDistribution(name), 1, 10000);
    for (double& x : sample) x = 3 * x + 2;
    ExpectTwoPassResults(sample, 1e-11);
  }
}

TEST(Moments, SurviveAMeanFarAboveTheSpread) {
  std::vector<double> sample = Draws(Distribution::kNormal, 2, 5000);
  for (double& x : sample) x += 1e6;
  ExpectTwoPassResults(sample, 1e-9);
}

TEST(Moments, AreThoseOfTheDefinitionForHandMadeSamples) {
  const Moments moments = MomentsOf({1, 1, 3, 3});
  EXPECT_EQ(moments.Mean(), 2.0);
  EXPECT_DOUBLE_EQ(moments.Variance(), 4.0 / 3);
  EXPECT_DOUBLE_EQ(moments.Kurtosis(), 1.0);
  EXPECT_DOUBLE_EQ(moments.MeanError(), std::sqrt(1.0 / 3));
  // Kurtosis 1: sqrt((1 - 1 + 2 / 3) / 4).
  EXPECT_DOUBLE_EQ(moments.VarianceRelativeError(), std::sqrt(1.0 / 6));
}

TEST(Moments, OfTooFewValuesHaveNoVariance) {
  EXPECT_TRUE(std::isnan(Moments().Variance()));
  const Moments one = MomentsOf({5});
  EXPECT_EQ(one.Mean(), 5.0);
  EXPECT_TRUE(std::isnan(one.Variance()));
  EXPECT_TRUE(std::isnan(one.Kurtosis()));
  EXPECT_TRUE(std::isnan(one.VarianceEstimate().high));
}

TEST(Moments, OfAConstantHaveAnExactVarianceOfZero) {
  const Moments constant = MomentsOf(std::vector<double>(100, 0.1));
  EXPECT_EQ(constant.Mean(), 0.1);
  EXPECT_EQ(constant.Variance(), 0.0);
  EXPECT_TRUE(std::isnan(constant.Kurtosis()));
  EXPECT_EQ(constant.VarianceEstimate().low, 0.0);
  EXPECT_EQ(constant.VarianceEstimate().high, 0.0);
}

TEST(Moments, KurtosisTellsTheDistributionsApart) {
  EXPECT_NEAR(MomentsOf(Draws(Distribution::kUniform, 3, 200000)).Kurtosis(), 1.8, 0.02);
  EXPECT_NEAR(MomentsOf(Draws(Distribution::kNormal, 3, 200000)).Kurtosis(), 3.0, 0.06);
  EXPECT_NEAR(MomentsOf(Draws(Distribution::kLaplace, 3, 200000)).Kurtosis(), 6.0, 0.4);
}

TEST(Moments, EstimatesAreTheValueWithItsStatedInterval) {
  const Moments moments = MomentsOf(Draws(Distribution::kNormal, 4, 400));
  constexpr double kZ = 1.959963984540054;
  const Estimate mean = moments.MeanEstimate();
  EXPECT_EQ(mean.value, moments.Mean());
  EXPECT_DOUBLE_EQ(mean.high - mean.value, kZ * moments.MeanError());
  EXPECT_NEAR(mean.value - mean.low, mean.high - mean.value, 1e-15);
  const Estimate variance = moments.VarianceEstimate();
  EXPECT_EQ(variance.value, moments.Variance());
  const double factor = std::exp(kZ * moments.VarianceRelativeError());
  EXPECT_DOUBLE_EQ(variance.high / variance.value, factor);
  EXPECT_DOUBLE_EQ(variance.value / variance.low, factor);
}

// The share of samples whose interval holds the population's mean 0 and variance 1.
struct Coverage {
  double mean, variance;
};

Coverage CoverageOf(Distribution distribution, size_t sample_size) {
  constexpr uint64_t kSamples = 4000;
  const std::vector<double> all = Draws(distribution, 5, kSamples * sample_size);
  size_t mean = 0, variance = 0;
  for (size_t s = 0; s < kSamples; ++s) {
    Moments moments;
    for (size_t i = 0; i < sample_size; ++i) moments.Add(all[s * sample_size + i]);
    const Estimate m = moments.MeanEstimate();
    const Estimate v = moments.VarianceEstimate();
    mean += m.low <= 0 && 0 <= m.high;
    variance += v.low <= 1 && 1 <= v.high;
  }
  return {static_cast<double>(mean) / kSamples, static_cast<double>(variance) / kSamples};
}

// One standard error of a share of 4000 is 0.0035; samples of 200 are large, but not infinite.
TEST(Moments, IntervalsHoldThePopulationsValuesNineteenTimesOutOfTwenty) {
  for (Distribution distribution : {Distribution::kNormal, Distribution::kUniform}) {
    const Coverage coverage = CoverageOf(distribution, 200);
    EXPECT_NEAR(coverage.mean, 0.95, 0.015) << ToString(distribution);
    EXPECT_NEAR(coverage.variance, 0.95, 0.02) << ToString(distribution);
  }
  EXPECT_NEAR(CoverageOf(Distribution::kLaplace, 500).variance, 0.95, 0.035);
}

TEST(Comoments, CorrelationOfStraightLinesIsPlusOrMinusOne) {
  Comoments rising, falling;
  for (int i = 0; i < 50; ++i) {
    rising.Add(i, 3.0 * i + 1);
    falling.Add(i, -0.5 * i + 7);
  }
  EXPECT_NEAR(rising.Correlation(), 1.0, 1e-14);
  EXPECT_NEAR(falling.Correlation(), -1.0, 1e-14);
}

TEST(Comoments, CorrelationIsZeroWhenASideDoesNotVary) {
  Comoments flat;
  EXPECT_EQ(flat.Correlation(), 0.0);
  for (int i = 0; i < 10; ++i) flat.Add(i, 2.5);
  EXPECT_EQ(flat.Correlation(), 0.0);
}

TEST(Comoments, CorrelationEqualsTheTwoPassFormula) {
  const std::vector<double> x = Draws(Distribution::kNormal, 6, 3000);
  const std::vector<double> noise = Draws(Distribution::kLaplace, 7, 3000);
  Comoments comoments;
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = 0.6 * x[i] + 0.8 * noise[i] + 100;
    comoments.Add(x[i], y[i]);
  }
  const TwoPass in_x(x), in_y(y);
  long double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) xy += (x[i] - in_x.mean) * (y[i] - in_y.mean);
  ExpectClose(comoments.Correlation(), xy / std::sqrt(in_x.m2 * in_y.m2), 1e-12);
}

}  // namespace
}  // namespace numsim
