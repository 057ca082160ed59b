// Norms against their formulas, their gradients against differences.
#include "numsim/ops/shared/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/ops/elementwise.h"
#include "tests/ops/norm_problem.h"
#include "tests/ops/operation_checks.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

// Moments of vector v of a row, about `center`.
double MeanSquare(const Grid<double>& x, size_t row, size_t v, size_t n, double center) {
  double sum = 0;
  for (size_t c = v * n; c < (v + 1) * n; ++c) sum += std::pow(x(row, c) - center, 2);
  return sum / static_cast<double>(n);
}
double Mean(const Grid<double>& x, size_t row, size_t v, size_t n) {
  double sum = 0;
  for (size_t c = v * n; c < (v + 1) * n; ++c) sum += x(row, c);
  return sum / static_cast<double>(n);
}

TEST(Norms, AreThoseOfTheirFormulas) {
  for (const size_t groups : {1, 3}) {
    for (const size_t n : {1, 5, 33}) {
      const NormProblem<double> p(7, groups, n);
      const NormResult<double> rms = WithRmsNorm(p), layer = WithLayerNorm(p),
                               unit = WithUnitNorm(NormProblem<double>(7, 1, n));
      const NormProblem<double> single(7, 1, n);
      for (size_t r = 0; r < 7; ++r) {
        for (size_t c = 0; c < groups * n; ++c) {
          const size_t v = c / n;
          const double root = std::sqrt(MeanSquare(p.x, r, v, n, 0) + kNormEpsilon);
          ASSERT_NEAR(rms.y(r, c), p.gain(0, c % n) * p.x(r, c) / root, 1e-12);
          ASSERT_NEAR(rms.inverse(r, v), 1 / root, 1e-12 / root);
          const double mean = Mean(p.x, r, v, n);
          const double deviation = std::sqrt(MeanSquare(p.x, r, v, n, mean) + kNormEpsilon);
          const double normal = (p.x(r, c) - mean) / deviation;
          ASSERT_NEAR(layer.y(r, c), p.gain(0, c % n) * normal + p.bias(0, c % n), 1e-11);
        }
        const double norm = std::sqrt(MeanSquare(single.x, r, 0, n, 0) * static_cast<double>(n));
        for (size_t c = 0; c < n; ++c) ASSERT_NEAR(unit.y(r, c), single.x(r, c) / norm, 1e-12);
      }
    }
  }
}

TEST(Norms, GradientsEqualCentralDifferences) {
  for (const size_t groups : {1, 3}) {
    NormProblem<double> p(4, groups, 6);
    const NormResult<double> rms = WithRmsNorm(p);
    const auto rms_loss = [&] { return WeightedSum(p.g, WithRmsNorm(p).y); };
    ExpectGradient(p.x, rms.dx, rms_loss);
    ExpectGradient(p.gain, rms.gain_gradient, rms_loss);
    const NormResult<double> layer = WithLayerNorm(p);
    const auto layer_loss = [&] { return WeightedSum(p.g, WithLayerNorm(p).y); };
    ExpectGradient(p.x, layer.dx, layer_loss);
    ExpectGradient(p.gain, layer.gain_gradient, layer_loss);
    ExpectGradient(p.bias, layer.bias_gradient, layer_loss);
  }
  NormProblem<double> p(4, 1, 6);
  const NormResult<double> unit = WithUnitNorm(p);
  ExpectGradient(p.x, unit.dx, [&] { return WeightedSum(p.g, WithUnitNorm(p).y); });
}

void ExpectNearAll(const NormResult<float>& x,
                   const NormResult<double>& y,
                   const NormProblem<double>& p,
                   double y_bound) {
  const auto by_one = [](size_t, size_t) { return 0x1p-24; };
  ExpectNear(
      x.y, y.y, y_bound, [&](size_t r, size_t c) { return 0x1p-24 * (1 + std::abs(y.y(r, c))); });
  ExpectNear(
      x.inverse, y.inverse, 8, [&](size_t r, size_t c) { return 0x1p-24 * y.inverse(r, c); });
  const size_t n = p.gain.cols();
  ExpectNear(x.dx, y.dx, 32, [&](size_t r, size_t c) { return 0x1p-24 * y.inverse(r, c / n); });
  // Of kTestRows terms of the size of one.
  ExpectNear(x.gain_gradient, y.gain_gradient, 4 * kTestRows, by_one);
}

TEST(Norms, Float32IsNearFloat64) {
  for (const size_t n : {2, 15, 16, 17, 33, 130}) {
    for (const size_t groups : {1, 4}) {
      const NormProblem<float> narrow(kTestRows, groups, n);
      const NormProblem<double> wide(kTestRows, groups, n);
      ExpectNearAll(WithRmsNorm(narrow), WithRmsNorm(wide), wide, 4);
      const NormResult<float> layer = WithLayerNorm(narrow);
      const NormResult<double> wide_layer = WithLayerNorm(wide);
      // Of two elements the mean takes nearly all bits.
      if (n > 2) ExpectNearAll(layer, wide_layer, wide, 32);
      ExpectNear(layer.mean, wide_layer.mean, 16, [](size_t, size_t) { return 0x1p-24; });
      ExpectNear(layer.bias_gradient, wide_layer.bias_gradient, 4 * kTestRows, [](size_t, size_t) {
        return 0x1p-24;
      });
    }
    const NormProblem<float> narrow(kTestRows, 1, n);
    const NormProblem<double> wide(kTestRows, 1, n);
    const NormResult<float> unit = WithUnitNorm(narrow);
    const NormResult<double> wide_unit = WithUnitNorm(wide);
    ExpectNear(unit.y, wide_unit.y, 8, [](size_t, size_t) { return 0x1p-24; });
    ExpectNear(unit.dx, wide_unit.dx, 32, [&](size_t r, size_t) {
      return 0x1p-24 * wide_unit.inverse(r, 0);
    });
  }
}

TEST(Norms, GradientsOfGainAndBiasHaveTheStatedOrder) {
  // Where the factors are powers of two products are exact, and the order is all that is left.
  const size_t n = 5;
  NormProblem<float> p(kTestRows, 3, n);
  NormResult<float> r(p);
  Fill<float>(0.5f, r.inverse.View());
  Fill<float>(0, r.mean.View());
  for (size_t row = 0; row < kTestRows; ++row) {
    for (size_t c = 0; c < 3 * n; ++c) p.x(row, c) = static_cast<float>(1 << (row + c) % 4);
  }
  LayerNormGradient<float>(p.g.View(),
                           p.x.View(),
                           p.gain.View(),
                           r.mean.View(),
                           r.inverse.View(),
                           r.gain_gradient.View(),
                           r.bias_gradient.View(),
                           r.dx.View());
  for (size_t i = 0; i < n; ++i) {
    float gain = 0, bias = 0;
    for (size_t begin = 0; begin < kTestRows; begin += 128) {
      float gain_block = 0, bias_block = 0;
      for (size_t row = begin; row < std::min(kTestRows, begin + 128); ++row) {
        for (size_t v = 0; v < 3; ++v) {
          gain_block += p.g(row, v * n + i) * (p.x(row, v * n + i) * 0.5f);
          bias_block += p.g(row, v * n + i);
        }
      }
      gain += gain_block;
      bias += bias_block;
    }
    EXPECT_EQ(r.gain_gradient(0, i), gain);
    EXPECT_EQ(r.bias_gradient(0, i), bias);
  }
}

TEST(Norms, BitsDependOnNeitherTargetNorThreads) {
  for (const size_t n : {33, 130}) {
    const NormProblem<float> p(kTestRows, 4, n);
    ExpectSameBitsEverywhere([&] { return WithRmsNorm(p).All(); });
    ExpectSameBitsEverywhere([&] { return WithLayerNorm(p).All(); });
    ExpectSameBitsEverywhere(
        [&] { return WithUnitNorm(NormProblem<float>(kTestRows, 1, n)).All(); });
  }
}

template <typename T>
class NormsOf : public testing::Test {};
using BothTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(NormsOf, BothTypes);

TYPED_TEST(NormsOf, GradientMayReplaceItsInput) {
  using T = TypeParam;
  const NormProblem<T> p(20, 2, 17);
  const NormResult<T> rms = WithRmsNorm(p), layer = WithLayerNorm(p);
  NormResult<T> again(p);
  Grid<T> g = p.g;
  RmsNormGradient<T>(g.View(),
                     p.x.View(),
                     p.gain.View(),
                     rms.inverse.View(),
                     again.gain_gradient.View(),
                     g.View());
  EXPECT_TRUE(g.HasBitsOf(rms.dx));
  EXPECT_TRUE(again.gain_gradient.HasBitsOf(rms.gain_gradient));
  g = p.g;
  LayerNormGradient<T>(g.View(),
                       p.x.View(),
                       p.gain.View(),
                       layer.mean.View(),
                       layer.inverse.View(),
                       again.gain_gradient.View(),
                       again.bias_gradient.View(),
                       g.View());
  EXPECT_TRUE(g.HasBitsOf(layer.dx));
  const NormProblem<T> single(20, 1, 17);
  const NormResult<T> unit = WithUnitNorm(single);
  g = single.g;
  UnitNormGradient<T>(g.View(), unit.y.View(), unit.inverse.View(), g.View());
  EXPECT_TRUE(g.HasBitsOf(unit.dx));
}

TYPED_TEST(NormsOf, ZeroVectorsGiveZeros) {
  using T = TypeParam;
  NormProblem<T> p(2, 1, 17);
  Fill<T>(0, p.x.View());
  const NormResult<T> rms = WithRmsNorm(p), layer = WithLayerNorm(p), unit = WithUnitNorm(p);
  EXPECT_NEAR(rms.inverse(0, 0), 1 / std::sqrt(1e-5), 1e-4);
  EXPECT_NEAR(unit.inverse(0, 0), 1e12, 1e5);
  for (size_t c = 0; c < 17; ++c) {
    EXPECT_EQ(rms.y(1, c), 0);
    EXPECT_EQ(layer.y(1, c), p.bias(0, c));
    EXPECT_EQ(unit.y(1, c), 0);
    EXPECT_EQ(rms.dx(1, c), rms.inverse(0, 0) * (p.g(1, c) * p.gain(0, c)));
    EXPECT_EQ(unit.dx(1, c), unit.inverse(0, 0) * p.g(1, c));
    EXPECT_EQ(rms.gain_gradient(0, c), 0);
  }
}

TYPED_TEST(NormsOf, NormBelowTheLeastOneIsConstant) {
  using T = TypeParam;
  NormProblem<T> p(1, 1, 3);
  Fill<T>(T(1e-14), p.x.View());
  const NormResult<T> unit = WithUnitNorm(p);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(unit.y(0, c), 0.01, 1e-8);
    EXPECT_EQ(unit.dx(0, c), unit.inverse(0, 0) * p.g(0, c));
  }
}

TYPED_TEST(NormsOf, NanStaysInItsVector) {
  using T = TypeParam;
  WithEachBackend([&] {
    NormProblem<T> p(2, 3, 17);
    p.x(1, 17 + 16) = T{kNaN};
    for (const NormResult<T>& r : {WithRmsNorm(p), WithLayerNorm(p)}) {
      for (size_t c = 0; c < 3 * 17; ++c) {
        EXPECT_EQ(std::isnan(r.y(1, c)), c / 17 == 1);
        EXPECT_EQ(std::isnan(r.dx(1, c)), c / 17 == 1);
        EXPECT_FALSE(std::isnan(r.y(0, c)));
      }
      EXPECT_TRUE(std::isnan(r.gain_gradient(0, 16)));
    }
  });
}

TYPED_TEST(NormsOf, InfinityBecomesNanAsInIeee754) {
  using T = TypeParam;
  WithEachBackend([&] {
    NormProblem<T> p(1, 1, 17);
    p.x(0, 16) = T{kInfinity};
    const NormResult<T> rms = WithRmsNorm(p), unit = WithUnitNorm(p);
    EXPECT_EQ(rms.inverse(0, 0), 0);
    EXPECT_TRUE(std::isnan(rms.y(0, 16)));
    EXPECT_EQ(rms.y(0, 3), 0);
    EXPECT_TRUE(std::isnan(unit.y(0, 16)));
  });
}

TEST(Norms, VectorsLieSideBySideAsHeadsDo) {
  // As many rows as vectors: the same numbers, one vector a row.
  const size_t n = 16, groups = 4;
  const NormProblem<float> p(10, groups, n);
  const NormResult<float> grouped = WithRmsNorm(p);
  for (size_t row = 0; row < 10; ++row) {
    for (size_t v = 0; v < groups; ++v) {
      float inverse = 0;
      std::vector<float> y(n);
      RmsNorm<float>(p.x.View().Rows(row, 1).Columns(v * n, n),
                     p.gain.View(),
                     kNormEpsilon,
                     {&inverse, 1, 1},
                     {y.data(), 1, n});
      EXPECT_EQ(grouped.inverse(row, v), inverse);
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(grouped.y(row, v * n + i), y[i]);
    }
  }
}

TEST(NormsDeathTest, VectorsMustDivideTheRow) {
  const Grid<float> x(2, 10, 1), gain(1, 4, 2);
  Grid<float> inverse(2, 2), y(2, 10);
  EXPECT_DEATH(RmsNorm<float>(x.View(), gain.View(), 1e-5, inverse.View(), y.View()),
               "RmsNorm: 10 columns, gain 1 x 4");
}

}  // namespace
}  // namespace numsim
