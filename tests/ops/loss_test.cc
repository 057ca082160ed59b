#include "numsim/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "tests/ops/grid.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"
#include "tests/support/finite_differences.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

// Normal draws times `spread`, row by row.
template <typename T>
Grid<T> Logits(size_t rows, size_t cols, float spread, uint64_t seed) {
  Grid<T> grid(rows, cols, seed);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) grid(r, c) *= spread;
  }
  return grid;
}

// Every fifth row does not count.
std::vector<int32_t> Targets(size_t rows, size_t cols) {
  std::vector<int32_t> targets(rows);
  for (size_t r = 0; r < rows; ++r) {
    targets[r] = r % 5 == 3 ? -1 : static_cast<int32_t>(r * 7 % cols);
  }
  return targets;
}

template <typename T>
LossSum Loss(const Grid<T>& logits, const std::vector<int32_t>& targets) {
  return CrossEntropy<T>(logits.View(), Indices(targets), 1, {});
}

template <typename T>
Grid<T> Gradient(const Grid<T>& logits, const std::vector<int32_t>& targets, double factor) {
  Grid<T> gradient(logits.rows(), logits.cols());
  CrossEntropy<T>(logits.View(), Indices(targets), factor, gradient.View());
  EXPECT_TRUE(gradient.GapsAreUntouched());
  return gradient;
}

// softmax of a row by its definition.
template <typename T>
std::vector<long double> Softmax(const Grid<T>& logits, size_t row) {
  std::vector<long double> p(logits.cols());
  long double sum = 0;
  for (size_t c = 0; c < p.size(); ++c)
    sum += p[c] = std::exp(static_cast<long double>(logits(row, c)));
  for (long double& x : p) x /= sum;
  return p;
}

template <typename T>
void ExpectCrossEntropyOfTheDefinition(double tolerance) {
  for (const size_t cols : {1, 2, 15, 16, 17, 33, 100}) {
    SCOPED_TRACE(cols);
    const Grid<T> logits = Logits<T>(11, cols, 4, cols);
    const std::vector<int32_t> targets = Targets(11, cols);
    const LossSum loss = Loss(logits, targets);
    const Grid<T> gradient = Gradient(logits, targets, 3);
    EXPECT_EQ(loss.counted, 9u);
    long double sum = 0;
    for (size_t r = 0; r < 11; ++r) {
      const std::vector<long double> p = Softmax(logits, r);
      if (targets[r] >= 0) sum -= std::log(p[static_cast<size_t>(targets[r])]);
      for (size_t c = 0; c < cols; ++c) {
        const long double hot = static_cast<int32_t>(c) == targets[r] ? 1 : 0;
        const long double expected = targets[r] < 0 ? 0 : 3 * (p[c] - hot) / 9;
        EXPECT_NEAR(gradient(r, c), static_cast<double>(expected), tolerance);
      }
    }
    EXPECT_NEAR(loss.sum, static_cast<double>(sum), 20 * tolerance);
    EXPECT_EQ(loss.Mean(), loss.sum / 9);
  }
}

TEST(CrossEntropy, OfFloat64IsTheDefinition) { ExpectCrossEntropyOfTheDefinition<double>(1e-14); }

TEST(CrossEntropy, OfFloat32IsTheDefinition) { ExpectCrossEntropyOfTheDefinition<float>(3e-7); }

TEST(CrossEntropy, GradientIsThatOfTheMeanLoss) {
  Grid<double> logits(6, 7, 3);
  const std::vector<int32_t> targets = Targets(6, 7);
  const Grid<double> gradient = Gradient(logits, targets, 1);
  for (size_t r = 0; r < 6; ++r) {
    SCOPED_TRACE(r);
    ExpectGradient("logits", std::span(&logits(r, 0), 7), std::span(&gradient(r, 0), 7), [&] {
      return Loss(logits, targets).Mean();
    });
  }
}

TEST(CrossEntropy, GradientMayOverwriteTheLogits) {
  const Grid<float> logits = Logits<float>(9, 37, 3, 4);
  const std::vector<int32_t> targets = Targets(9, 37);
  Grid<float> in_place = logits;
  const LossSum loss = CrossEntropy<float>(in_place.View(), Indices(targets), 2, in_place.View());
  EXPECT_TRUE(in_place.HasBitsOf(Gradient(logits, targets, 2)));
  EXPECT_EQ(loss.sum, Loss(logits, targets).sum);
}

template <typename T>
void ExpectStableForLargeLogits() {
  Grid<T> logits(4, 3, 1);
  const T rows[4][3] = {{10000, 9999, 0},
                        {-10000, -9999, -20000},
                        {T{3e38f}, T{-3e38f}, 0},
                        {-std::numeric_limits<T>::infinity(), 1, 1}};
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c < 3; ++c) logits(r, c) = rows[r][c];
  }
  const double e = std::exp(1.0);
  EXPECT_NEAR(Loss(logits, {0, -1, -1, -1}).sum, std::log(1 + 1 / e), 1e-7);
  EXPECT_NEAR(Loss(logits, {-1, 0, -1, -1}).sum, std::log(1 + e), 1e-7);
  EXPECT_EQ(Loss(logits, {-1, -1, 0, -1}).sum, 0);
  EXPECT_EQ(Loss(logits, {-1, -1, 2, -1}).sum, double{3e38f});
  EXPECT_NEAR(Loss(logits, {-1, -1, -1, 1}).sum, std::log(2.0), 1e-7);
  EXPECT_EQ(Loss(logits, {-1, -1, -1, 0}).sum, std::numeric_limits<double>::infinity());
  const Grid<T> gradient = Gradient(logits, {1, -1, 1, 0}, 3);
  EXPECT_NEAR(gradient(0, 0), e / (1 + e), 1e-6);
  EXPECT_EQ(gradient(0, 2), 0);
  EXPECT_EQ(gradient(1, 1), 0);
  EXPECT_EQ(gradient(2, 0), 1);
  EXPECT_EQ(gradient(2, 1), -1);
  EXPECT_EQ(gradient(3, 0), -1);
  EXPECT_EQ(gradient(3, 1), T{0.5f});
}

TEST(CrossEntropy, IsStableForLargeLogits) {
  ExpectStableForLargeLogits<float>();
  ExpectStableForLargeLogits<double>();
}

template <typename T>
void ExpectNanOfItsRowAlone(float odd) {
  for (const size_t place : {0, 5, 16, 18}) {  // of vectors and behind them
    SCOPED_TRACE(place);
    Grid<T> logits(3, 19, 6);
    logits(1, place) = T{odd};
    const std::vector<int32_t> all = {1, 5, 3}, without = {1, -1, 3};
    const LossSum loss = Loss(logits, all);
    EXPECT_TRUE(std::isnan(loss.sum));
    EXPECT_EQ(loss.counted, 3u);
    const Grid<T> gradient = Gradient(logits, all, 3);
    for (size_t c = 0; c < 19; ++c) EXPECT_TRUE(std::isnan(gradient(1, c))) << c;
    EXPECT_TRUE(std::isfinite(Loss(logits, without).sum));
    const Grid<T> others = Gradient(logits, without, 2);  // of two rows that count
    for (size_t c = 0; c < 19; ++c) {
      EXPECT_EQ(others(1, c), 0);
      EXPECT_EQ(others(0, c), gradient(0, c));
      EXPECT_EQ(others(2, c), gradient(2, c));
    }
    // Not correct, whichever its target is.
    size_t correct = 0;
    for (int32_t t = 0; t < 19; ++t) correct += Loss(logits, {-1, t, -1}).correct;
    EXPECT_EQ(correct, 0u);
  }
}

TEST(CrossEntropy, NanAndInfinityMakeTheirRowNan) {
  for (const float odd : {kNaN, kInfinity}) {
    ExpectNanOfItsRowAlone<float>(odd);
    ExpectNanOfItsRowAlone<double>(odd);
  }
}

template <typename T>
void ExpectFirstOfEqualsToBeBest() {
  for (const size_t cols : {4, 40}) {
    Grid<T> logits(1, cols, 7);
    for (size_t c = 0; c < cols; ++c) logits(0, c) = c == 2 || c == cols - 1 ? 5 : -1;
    for (size_t t = 0; t < cols; ++t) {
      EXPECT_EQ(Loss(logits, {static_cast<int32_t>(t)}).correct, t == 2 ? 1u : 0u) << t;
    }
  }
}

TEST(CrossEntropy, OfEqualLogitsTheFirstIsTheAnswer) {
  ExpectFirstOfEqualsToBeBest<float>();
  ExpectFirstOfEqualsToBeBest<double>();
}

TEST(CrossEntropy, CountsCorrectRows) {
  Grid<float> logits(3, 20, 8);
  logits(0, 17) = logits(1, 3) = logits(2, 0) = 9;
  EXPECT_EQ(Loss(logits, {17, 3, 0}).correct, 3u);
  EXPECT_EQ(Loss(logits, {17, 4, -1}).correct, 1u);
}

TEST(CrossEntropy, WithoutARowThatCountsIsZero) {
  const Grid<float> logits(2, 3, 9);
  const LossSum loss = Loss(logits, {-1, -1});
  EXPECT_EQ(loss.counted, 0u);
  EXPECT_EQ(loss.sum, 0);
  EXPECT_EQ(loss.Mean(), 0);
  const Grid<float> gradient = Gradient(logits, {-1, -1}, 1);
  EXPECT_EQ(gradient(1, 2), 0);
}

TEST(CrossEntropy, AddsRowsInOrderInFloat64) {
  const Grid<float> logits = Logits<float>(50, 30, 5, 10);
  double sum = 0;
  std::vector<int32_t> one(50, -1);
  for (size_t r = 0; r < 50; ++r) {
    one[r] = 4;
    sum += Loss(logits, one).sum;
    one[r] = -1;
  }
  EXPECT_EQ(Loss(logits, std::vector<int32_t>(50, 4)).sum, sum);
}

TEST(CrossEntropy, TargetOutsideOfTheClassesThrows) {
  const Grid<float> logits(1, 3, 1);
  EXPECT_EQ(ErrorOf([&] { Loss(logits, {3}); }), "CrossEntropy: target 3 of 3 classes in row 0");
  EXPECT_EQ(ErrorOf([&] { Loss(logits, {-2}); }), "CrossEntropy: target -2 of 3 classes in row 0");
}

// Loss and gradient of `make` with every backend and number of threads.
void ExpectSameEverywhere(const std::function<LossSum(Grid<float>&)>& make,
                          size_t rows,
                          size_t cols) {
  SCOPED_TRACE(cols);
  Grid<float> expected(rows, cols);
  const LossSum loss = make(expected);
  WithEachBackend([&] {
    for (const int threads : {1, 2, 4}) {
      SetThreadCount(threads);
      Grid<float> gradient(rows, cols);
      EXPECT_EQ(make(gradient).sum, loss.sum) << threads;
      EXPECT_TRUE(gradient.HasBitsOf(expected)) << threads;
    }
  });
}

TEST(CrossEntropy, HasTheSameBitsOnEveryTargetWithAnyThreads) {
  for (const size_t cols : {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 50, 257, 1000}) {
    const Grid<float> logits = Logits<float>(40, cols, 6, 11);
    const std::vector<int32_t> targets = Targets(40, cols);
    ExpectSameEverywhere(
        [&](Grid<float>& gradient) {
          return CrossEntropy<float>(logits.View(), Indices(targets), 1, gradient.View());
        },
        40,
        cols);
  }
}

TEST(CrossEntropy, NanRowHasTheSameBitsOnEveryTarget) {
  Grid<float> logits(2, 21, 12);
  logits(0, 20) = -kNaN;
  logits(1, 2) = kInfinity;
  Grid<float> expected(2, 21);
  CrossEntropy<float>(logits.View(), Indices({1, 2}), 1, expected.View());
  WithEachBackend([&] {
    Grid<float> gradient(2, 21);
    CrossEntropy<float>(logits.View(), Indices({1, 2}), 1, gradient.View());
    EXPECT_TRUE(gradient.HasBitsOf(expected));
  });
}

template <typename T>
void ExpectSquaredErrorOfTheDefinition(double tolerance) {
  for (const size_t cols : {1, 5, 16, 45}) {
    const Grid<T> y(6, cols, 13), target(6, cols, 14);
    Grid<T> gradient(6, cols);
    const LossSum loss = SquaredError<T>(y.View(), target.View(), 5, gradient.View());
    long double sum = 0;
    for (size_t r = 0; r < 6; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        const long double error = static_cast<long double>(y(r, c)) - target(r, c);
        sum += error * error / static_cast<long double>(cols);
        const long double expected = 5 * 2 * error / static_cast<long double>(6 * cols);
        EXPECT_NEAR(gradient(r, c), static_cast<double>(expected), tolerance);
      }
    }
    EXPECT_NEAR(loss.sum, static_cast<double>(sum), 20 * tolerance);
    EXPECT_EQ(loss.counted, 6u);
    EXPECT_EQ(loss.correct, 0u);
    EXPECT_TRUE(gradient.GapsAreUntouched());
    Grid<T> in_place = y;
    EXPECT_EQ(SquaredError<T>(in_place.View(), target.View(), 5, in_place.View()).sum, loss.sum);
    EXPECT_EQ(SquaredError<T>(y.View(), target.View(), 5, {}).sum, loss.sum);
    for (size_t c = 0; c < cols; ++c) EXPECT_EQ(in_place(5, c), gradient(5, c));
  }
}

TEST(SquaredError, IsTheDefinition) {
  ExpectSquaredErrorOfTheDefinition<double>(1e-14);
  ExpectSquaredErrorOfTheDefinition<float>(2e-6);
}

TEST(SquaredError, GradientIsThatOfTheMeanLoss) {
  Grid<double> y(3, 4, 15);
  const Grid<double> target(3, 4, 16);
  Grid<double> gradient(3, 4);
  SquaredError<double>(y.View(), target.View(), 1, gradient.View());
  for (size_t r = 0; r < 3; ++r) {
    ExpectGradient("y", std::span(&y(r, 0), 4), std::span(&gradient(r, 0), 4), [&] {
      return SquaredError<double>(y.View(), target.View(), 1, {}).Mean();
    });
  }
}

TEST(SquaredError, HasTheSameBitsOnEveryTargetWithAnyThreads) {
  for (const size_t cols : {1, 4, 15, 16, 17, 100, 1030}) {
    const Grid<float> y(40, cols, 17), target(40, cols, 18);
    ExpectSameEverywhere(
        [&](Grid<float>& gradient) {
          return SquaredError<float>(y.View(), target.View(), 1, gradient.View());
        },
        40,
        cols);
  }
}

TEST(SquaredError, NanGoesThrough) {
  Grid<float> y(2, 3, 19);
  y(1, 1) = kNaN;
  Grid<float> gradient(2, 3);
  EXPECT_TRUE(std::isnan(
      SquaredError<float>(y.View(), Grid<float>(2, 3, 20).View(), 1, gradient.View()).sum));
  EXPECT_TRUE(std::isnan(gradient(1, 1)));
  EXPECT_TRUE(std::isfinite(gradient(1, 2)));
}

template <typename T>
void ExpectCountsOfClasses() {
  Grid<T> scores(4, 4, 21);
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c < 4; ++c) scores(r, c) = r == c ? 1 : 0;
  }
  EXPECT_EQ(CountBestOfClass<T>(scores.View(), Indices({5, 6, 5, 7})), 4u);
  scores(0, 2) = 2;  // of the class of 0
  EXPECT_EQ(CountBestOfClass<T>(scores.View(), Indices({5, 6, 5, 7})), 4u);
  EXPECT_EQ(CountBestOfClass<T>(scores.View(), Indices({5, 6, 8, 7})), 3u);
  scores(1, 0) = 1;  // a tie: the first is the answer
  EXPECT_EQ(CountBestOfClass<T>(scores.View(), Indices({5, 6, 5, 7})), 3u);
  scores(3, 0) = T{kNaN};
  EXPECT_EQ(CountBestOfClass<T>(scores.View(), Indices({5, 6, 5, 7})), 2u);
}

TEST(CountBestOfClass, CountsRowsWhoseBestIsOfTheirClass) {
  ExpectCountsOfClasses<float>();
  ExpectCountsOfClasses<double>();
}

}  // namespace
}  // namespace numsim
