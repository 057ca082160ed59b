// The loops and functions of ops/internal/rows-inl.h on every target.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/random/distributions.h"
#include "tests/ops/rows_simd.h"
#include "tests/support/every_backend.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

// The neighbours on both sides of where e^x leaves the normal numbers.
constexpr float kLowest = -0x1.5d589ep+6f, kBelowLowest = -0x1.5d58a0p+6f;
constexpr float kHighest = 0x1.62e42ep+6f, kAboveHighest = 0x1.62e430p+6f;

double Ulp(double x) {
  int exponent;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, exponent - 24);
}

// Floats of all magnitudes up to the limits of e^x, of both signs.
std::vector<float> DenseSample() {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < std::bit_cast<uint32_t>(kHighest); bits += 5003) {
    const float x = std::bit_cast<float>(bits);
    values.push_back(x);
    if (-x >= kLowest) values.push_back(-x);
  }
  for (const float x : {kLowest, kHighest, 0.0f, -0.0f, 1.0f, -1.0f}) values.push_back(x);
  return values;
}

TEST(ExpRow, IsLessThanOneUlpOff) {
  const std::vector<float> x = DenseSample();
  std::vector<float> y(x.size());
  WithEachBackend([&] {
    ExpOf(x.data(), x.size(), y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = Exp(x[i]);
      const double error = std::abs(y[i] - exact) / Ulp(exact);
      if (!(error <= worst)) worst = error;
    }
    EXPECT_LT(worst, 1);
  });
}

TEST(ExpRow, IsZeroBelowTheNormalsAndInfinityAboveThem) {
  const std::vector<float> x = {kBelowLowest,
                                -100,
                                -1e30f,
                                -kInfinity,
                                kLowest,
                                kAboveHighest,
                                89,
                                1e30f,
                                kInfinity,
                                kHighest,
                                0,
                                kNaN};
  WithEachBackend([&] {
    std::vector<float> y(x.size());
    ExpOf(x.data(), x.size(), y.data());
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::bit_cast<uint32_t>(y[i]), 0u) << x[i];
    EXPECT_TRUE(std::isnormal(y[4]));
    for (size_t i = 5; i < 9; ++i) EXPECT_EQ(y[i], kInfinity) << x[i];
    EXPECT_TRUE(std::isnormal(y[9]));
    EXPECT_EQ(y[10], 1);
    EXPECT_TRUE(std::isnan(y[11]));
  });
}

TEST(SigmoidLanes, IsWithinTwoUlp) {
  const std::vector<float> x = DenseSample();
  std::vector<float> y(x.size());
  WithEachBackend([&] {
    SigmoidOf(x.data(), x.size(), y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = 1 / (1 + Exp(-double{x[i]}));
      const double error = std::abs(y[i] - exact) / Ulp(exact);
      if (!(error <= worst)) worst = error;
    }
    EXPECT_LT(worst, 2);
  });
}

TEST(SigmoidLanes, HasItsLimitsAtInfinity) {
  const std::vector<float> x = {-kInfinity, -1000, 1000, kInfinity, kNaN};
  WithEachBackend([&] {
    std::vector<float> y(x.size());
    SigmoidOf(x.data(), x.size(), y.data());
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 0);
    EXPECT_EQ(y[2], 1);
    EXPECT_EQ(y[3], 1);
    EXPECT_TRUE(std::isnan(y[4]));
  });
}

// The order that rows-inl.h states: 16 lanes, then a tree.
float SumInOrder(const std::vector<float>& x, float addend) {
  float lanes[16] = {};
  for (size_t i = 0; i < x.size(); ++i) lanes[i % 16] += x[i] + addend;
  for (const size_t half : {8, 4, 2, 1}) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

TEST(SumRow, AddsInTheStatedOrderForEveryLength) {
  WithEachBackend([&] {
    for (size_t n = 0; n < 100; ++n) {
      std::vector<float> x(n);  // no element behind them that could be read
      FillNormal({n, 1}, 0, x);
      EXPECT_EQ(SumOf(x.data(), n), SumInOrder(x, 0)) << n;
    }
  });
}

TEST(SumRow, LeavesOutTermsBeyondTheRow) {
  WithEachBackend([&] {
    for (size_t n = 0; n < 100; ++n) {
      std::vector<float> x(n);
      FillNormal({n, 2}, 0, x);
      EXPECT_EQ(SumOfSuccessors(x.data(), n), SumInOrder(x, 1)) << n;
    }
  });
}

TEST(StoreRow, WritesNothingBehindTheRow) {
  WithEachBackend([&] {
    for (size_t n = 0; n < 40; ++n) {
      const std::vector<float> x(n, 0.0f);
      std::vector<float> y(n + 20, -1.0f);
      ExpOf(x.data(), n, y.data());
      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i < n ? 1 : -1) << n << " " << i;
    }
  });
}

}  // namespace
}  // namespace numsim
