// Checks that tests of operations share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "tests/ops/grid.h"
#include "tests/support/every_backend.h"

namespace numsim {

// make() returns what an operation wrote: the same bits on every backend with any threads, and
// nothing between the rows.
inline void ExpectSameBitsEverywhere(const std::function<std::vector<Grid<float>>()>& make) {
  const ExecutionState state;
  SetThreadCount(1);
  const std::vector<Grid<float>> first = make();
  WithEachBackend([&] {
    for (const int threads : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(threads) + " threads");
      SetThreadCount(threads);
      const std::vector<Grid<float>> again = make();
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_TRUE(again[i].HasBitsOf(first[i])) << "result " << i;
        EXPECT_TRUE(again[i].GapsAreUntouched()) << "result " << i;
      }
    }
  });
}

// Every element of x within `bound` times scale(row, col) of y. Returns the largest error, in
// scales.
inline double ExpectNear(const Grid<float>& x,
                         const Grid<double>& y,
                         double bound,
                         const std::function<double(size_t, size_t)>& scale) {
  double largest = 0;
  for (size_t r = 0; r < x.rows(); ++r) {
    for (size_t c = 0; c < x.cols(); ++c) {
      const double error = std::abs(double{x(r, c)} - y(r, c)) / scale(r, c);
      if (!(error <= largest)) largest = error;
    }
  }
  EXPECT_LE(largest, bound);
  return largest;
}

// sum of weights * y, whose gradient at y is `weights`.
inline double WeightedSum(const Grid<double>& weights, const Grid<double>& y) {
  double sum = 0;
  for (size_t r = 0; r < y.rows(); ++r) {
    for (size_t c = 0; c < y.cols(); ++c) sum += weights(r, c) * y(r, c);
  }
  return sum;
}

// `gradient` is that of loss() at x, which loss() reads.
inline void ExpectGradient(Grid<double>& x,
                           const Grid<double>& gradient,
                           const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  for (size_t r = 0; r < x.rows(); ++r) {
    for (size_t c = 0; c < x.cols(); ++c) {
      const double at = x(r, c);
      x(r, c) = at + kStep;
      const double above = loss();
      x(r, c) = at - kStep;
      const double below = loss();
      x(r, c) = at;
      const double difference = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient(r, c), difference, 1e-8 * (1 + std::abs(difference)))
          << "row " << r << ", column " << c;
    }
  }
}

// Around the widths of vectors, and more rows than one block of a sum has.
inline const std::vector<size_t>& TestColumns() {
  static const std::vector<size_t> cols = {1, 15, 16, 17, 33, 130};
  return cols;
}
inline constexpr size_t kTestRows = 300;

}  // namespace numsim
