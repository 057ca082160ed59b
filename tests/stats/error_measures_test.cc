#include "numsim/stats/error_measures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

ErrorMeasures Measure(const std::vector<float>& x,
                      const std::vector<float>& y,
                      double limit = kNoLimit) {
  return MeasureError(x, y, limit);
}

TEST(MeasureError, SumsSignalAndErrorOfHandMadePairs) {
  const ErrorMeasures sums = Measure({1, -2, 3, 0}, {1.5f, -2, 2, 0.25f});
  EXPECT_EQ(sums.elements, 4u);
  EXPECT_EQ(sums.measured, 4u);
  EXPECT_EQ(sums.nonfinite, 0u);
  EXPECT_EQ(sums.signal_square, 14.0);
  EXPECT_EQ(sums.error_square, 0.25 + 1 + 0.0625);
  EXPECT_EQ(sums.error_sum, 0.5 - 1 + 0.25);
  EXPECT_EQ(sums.max_error, 1.0);
  EXPECT_EQ(sums.max_signal, 3.0);
  EXPECT_EQ(sums.MeanError(), -0.0625);
  EXPECT_DOUBLE_EQ(sums.RelativeError(), std::sqrt(1.3125 / 14));
  EXPECT_NEAR(sums.SqnrDb(), 10 * std::log10(14 / 1.3125), 1e-12);
}

TEST(MeasureError, CountsNonfiniteOriginalsAndLeavesThemOut) {
  const ErrorMeasures sums = Measure({kNaN, kInfinity, -kInfinity, 2}, {0, 7, kNaN, 2}, 1.0);
  EXPECT_EQ(sums.elements, 4u);
  EXPECT_EQ(sums.nonfinite, 3u);
  EXPECT_EQ(sums.measured, 1u);
  EXPECT_EQ(sums.overflow, 1u);  // the 2
  EXPECT_EQ(sums.underflow, 0u);
  EXPECT_EQ(sums.signal_square, 4.0);
  EXPECT_EQ(sums.OverflowShare(), 1.0);
}

TEST(MeasureError, CountsAFiniteNumberThatBecameNonfiniteAsOverflowAndLeavesItOut) {
  const ErrorMeasures sums = Measure({1, 2, -3, 4}, {kNaN, kInfinity, -kInfinity, 4});
  EXPECT_EQ(sums.overflow, 3u);
  EXPECT_EQ(sums.measured, 1u);
  EXPECT_EQ(sums.error_square, 0.0);
  EXPECT_EQ(sums.OverflowShare(), 0.75);
}

TEST(MeasureError, CountsAnOverflowFromTheLimitOnAndOnce) {
  const std::vector<float> x = {1.5f, std::nextafter(1.5f, 0.0f), -1.5f, 2, 9};
  const ErrorMeasures sums = Measure(x, {1, 1, -1, 1, kInfinity}, 1.5);
  EXPECT_EQ(sums.overflow, 4u);
  EXPECT_EQ(sums.measured, 4u);
}

TEST(MeasureError, CountsANonzeroNumberThatBecameZeroAsUnderflow) {
  const ErrorMeasures sums = Measure({0, -0.0f, 1e-30f, -1e-45f, 1}, {0, 0, 0, -0.0f, 1});
  EXPECT_EQ(sums.underflow, 2u);
  EXPECT_EQ(sums.UnderflowShare(), 0.4);
  EXPECT_EQ(sums.overflow, 0u);
}

TEST(MeasureError, OfNothingHasNoRatios) {
  const ErrorMeasures sums = Measure({}, {});
  EXPECT_EQ(sums.elements, 0u);
  EXPECT_TRUE(std::isnan(sums.SqnrDb()));
  EXPECT_TRUE(std::isnan(sums.RelativeError()));
  EXPECT_EQ(sums.MeanError(), 0.0);
  EXPECT_EQ(sums.UnderflowShare(), 0.0);
  EXPECT_EQ(sums.OverflowShare(), 0.0);
}

TEST(MeasureError, OfAnAllZeroSignalHasNoRatio) {
  EXPECT_TRUE(std::isnan(Measure({0, 0}, {0, 0}).SqnrDb()));
  EXPECT_TRUE(std::isnan(Measure({0, 0}, {0, 0}).RelativeError()));
}

TEST(MeasureError, WithoutErrorHasInfiniteSignalToNoise) {
  EXPECT_EQ(Measure({1, 2}, {1, 2}).SqnrDb(), kNoLimit);
  EXPECT_EQ(Measure({1, 2}, {1, 2}).RelativeError(), 0.0);
}

// Float sums would lose the small pairs.
TEST(MeasureError, SumsInDoublePrecision) {
  std::vector<float> x(1001, 1e-3f), y(1001, 0.0f);
  x[0] = y[0] = 1e4f;
  const double small = static_cast<double>(1e-3f);
  EXPECT_NEAR(Measure(x, y).error_square, 1000 * small * small, 1e-15);
  EXPECT_NEAR(Measure(x, y).signal_square - 1e8, 1000 * small * small, 1e-5);
}

TEST(MeasureError, EqualsANaiveSumAcrossItsBlocks) {
  std::vector<float> x(100003), y(x.size());
  FillNormal({.seed = 8, .stream = 1}, 0, x);
  FillNormal({.seed = 8, .stream = 2}, 0, y);
  long double signal = 0, error = 0, mean = 0;
  size_t beyond = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] + 0.01f * y[i];
    const long double d = static_cast<long double>(y[i]) - x[i];
    signal += static_cast<long double>(x[i]) * x[i];
    error += d * d;
    mean += d;
    beyond += std::abs(x[i]) >= 2;
  }
  const ErrorMeasures sums = Measure(x, y, 2.0);
  EXPECT_NEAR(sums.signal_square, static_cast<double>(signal), 1e-7);
  EXPECT_NEAR(sums.error_square, static_cast<double>(error), 1e-11);
  EXPECT_NEAR(sums.error_sum, static_cast<double>(mean), 1e-10);
  EXPECT_EQ(sums.overflow, beyond);
  EXPECT_EQ(sums.elements, x.size());
}

TEST(MeasureError, ThreadsDoNotChangeABit) {
  std::vector<float> x(100003), y(x.size(), 0.5f);
  FillNormal({.seed = 8, .stream = 3}, 0, x);
  const int before = ThreadCount();
  SetThreadCount(1);
  const ErrorMeasures one = Measure(x, y, 2.0);
  for (int threads : {2, 3, 5}) {
    SetThreadCount(threads);
    const ErrorMeasures many = Measure(x, y, 2.0);
    EXPECT_EQ(std::memcmp(&many, &one, sizeof(one)), 0) << threads << " threads";
  }
  SetThreadCount(before);
}

TEST(ErrorMeasures, MergeAddsCountsAndSumsAndKeepsTheLargest) {
  ErrorMeasures merged = Measure({1, kNaN, 1e-9f}, {2, 0, 0}, 1.0);
  merged.Merge(Measure({-8, 3}, {-8, kInfinity}, 1.0));
  const ErrorMeasures whole = Measure({1, kNaN, 1e-9f, -8, 3}, {2, 0, 0, -8, kInfinity}, 1.0);
  EXPECT_EQ(std::memcmp(&merged, &whole, sizeof(whole)), 0);
  EXPECT_EQ(merged.elements, 5u);
  EXPECT_EQ(merged.overflow, 3u);
  EXPECT_EQ(merged.underflow, 1u);
  EXPECT_EQ(merged.max_signal, 8.0);
  EXPECT_EQ(merged.max_error, 1.0);
}

TEST(MeasureError, UnequalLengthsThrow) {
  EXPECT_EQ(ErrorOf([&] { Measure({1, 2}, {1}); }), "MeasureError: 'y' has 1 elements, expected 2");
}

}  // namespace
}  // namespace numsim
