// Nonlinearities against their formulas, their gradients against differences.
#include "numsim/ops/shared/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/ops/operation_checks.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

// Values from -20 to 20, at which everything happens.
template <typename T>
Grid<T> Spread(size_t rows, size_t cols, uint64_t seed) {
  Grid<T> grid(rows, cols, seed);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) grid(r, c) = T{static_cast<float>(grid(r, c)) * 4};
  }
  return grid;
}

// By the definition, with the C library.
double GeluByTanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double Swish(double x) { return x / (1 + std::exp(-x)); }

TEST(Activations, AreThoseOfTheirFormulas) {
  const Grid<double> x = Spread<double>(50, 34, 1);
  Grid<double> gelu(50, 34), relu(50, 34), swiglu(50, 17);
  Gelu<double>(x.View(), gelu.View());
  Relu<double>(x.View(), relu.View());
  Swiglu<double>(x.View(), swiglu.View());
  for (size_t r = 0; r < 50; ++r) {
    for (size_t c = 0; c < 34; ++c) {
      ASSERT_NEAR(gelu(r, c), GeluByTanh(x(r, c)), 1e-14 * (1 + std::abs(x(r, c))));
      ASSERT_EQ(relu(r, c), std::max(x(r, c), 0.0));
    }
    for (size_t c = 0; c < 17; ++c) {
      const double expected = Swish(x(r, c)) * x(r, 17 + c);
      ASSERT_NEAR(swiglu(r, c), expected, 1e-14 * (1 + std::abs(expected)));
    }
  }
}

TEST(Activations, GradientsEqualCentralDifferences) {
  Grid<double> x(6, 10, 1), y(6, 10), half(6, 5), dx(6, 10);
  const Grid<double> g(6, 10, 2), half_g(6, 5, 3);
  GeluGradient<double>(g.View(), x.View(), dx.View());
  ExpectGradient(x, dx, [&] {
    Gelu<double>(x.View(), y.View());
    return WeightedSum(g, y);
  });
  ReluGradient<double>(g.View(), x.View(), dx.View());
  ExpectGradient(x, dx, [&] {
    Relu<double>(x.View(), y.View());
    return WeightedSum(g, y);
  });
  SwigluGradient<double>(half_g.View(), x.View(), dx.View());
  ExpectGradient(x, dx, [&] {
    Swiglu<double>(x.View(), half.View());
    return WeightedSum(half_g, half);
  });
}

// The outputs of all six, for inputs x.
template <typename T>
std::vector<Grid<T>> AllOf(const Grid<T>& x, const Grid<T>& g) {
  const size_t rows = x.rows(), cols = x.cols();
  std::vector<Grid<T>> out(4, Grid<T>(rows, cols));
  out.emplace_back(rows, cols / 2);
  out.emplace_back(rows, cols / 2 * 2);
  Gelu<T>(x.View(), out[0].View());
  GeluGradient<T>(g.View(), x.View(), out[1].View());
  Relu<T>(x.View(), out[2].View());
  ReluGradient<T>(g.View(), x.View(), out[3].View());
  const MatrixSpan<const T> pairs = x.View().Columns(0, cols / 2 * 2);
  Swiglu<T>(pairs, out[4].View());
  SwigluGradient<T>(g.View().Columns(0, cols / 2), pairs, out[5].View());
  return out;
}

TEST(Activations, Float32IsNearFloat64) {
  constexpr double kEpsilon = 0x1p-24;
  for (const size_t cols : {1, 15, 16, 17, 33, 130}) {
    const Grid<float> x = Spread<float>(kTestRows, cols, 1), g(kTestRows, cols, 2);
    const Grid<double> wide_x = Spread<double>(kTestRows, cols, 1), wide_g(kTestRows, cols, 2);
    const auto narrow = AllOf(x, g);
    const auto wide = AllOf(wide_x, wide_g);
    const size_t half = cols / 2;
    const auto of_x = [&](size_t r, size_t c) { return kEpsilon * std::abs(wide_x(r, c)); };
    const auto of_g = [&](size_t r, size_t c) { return kEpsilon * std::abs(wide_g(r, c)); };
    ExpectNear(narrow[0], wide[0], 4, of_x);
    ExpectNear(narrow[1], wide[1], 12, of_g);
    ExpectNear(narrow[2], wide[2], 0, [](size_t, size_t) { return 1; });
    ExpectNear(narrow[3], wide[3], 0, [](size_t, size_t) { return 1; });
    ExpectNear(narrow[4], wide[4], 4, [&](size_t r, size_t c) {
      return kEpsilon * std::abs(wide[4](r, c));
    });
    ExpectNear(narrow[5], wide[5], 8, [&](size_t r, size_t c) {
      const double gradient = std::abs(wide_g(r, c % half));
      return kEpsilon * gradient * std::abs(c < half ? wide_x(r, half + c) : wide_x(r, c - half));
    });
    for (const Grid<float>& y : narrow) EXPECT_TRUE(y.GapsAreUntouched());
  }
}

TEST(Activations, BitsDependOnNeitherTargetNorThreads) {
  for (const size_t cols : {33, 130}) {
    ExpectSameBitsEverywhere(
        [&] { return AllOf(Spread<float>(kTestRows, cols, 1), Grid<float>(kTestRows, cols, 2)); });
  }
}

TEST(Activations, RowsWithAndWithoutGapsGiveTheSame) {
  const Grid<float> x = Spread<float>(kTestRows, 130, 1);
  Grid<float> y(kTestRows, 130);
  Gelu<float>(x.View(), y.View());
  Buffer<float> from, to;
  const MatrixSpan<float> dense = from.Resize(kTestRows, 130), result = to.Resize(kTestRows, 130);
  for (size_t r = 0; r < kTestRows; ++r) std::copy_n(&x(r, 0), 130, dense.Row(r));
  Gelu<float>(dense, result);
  for (size_t r = 0; r < kTestRows; ++r) {
    for (size_t c = 0; c < 130; ++c) ASSERT_EQ(result.Row(r)[c], y(r, c));
  }
}

TEST(Activations, GradientMayReplaceItsInput) {
  const Grid<float> x = Spread<float>(20, 33, 1), g(20, 33, 2);
  const auto out = AllOf(x, g);
  Grid<float> gelu = g, relu = g;
  GeluGradient<float>(gelu.View(), x.View(), gelu.View());
  ReluGradient<float>(relu.View(), x.View(), relu.View());
  for (size_t r = 0; r < 20; ++r) {
    for (size_t c = 0; c < 33; ++c) {
      ASSERT_EQ(gelu(r, c), out[1](r, c));
      ASSERT_EQ(relu(r, c), out[3](r, c));
    }
  }
}

template <typename T>
class ActivationsOf : public testing::Test {};
using BothTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(ActivationsOf, BothTypes);

TYPED_TEST(ActivationsOf, AreFlatFarFromZero) {
  using T = TypeParam;
  WithEachBackend([&] {
    for (const double size : {50.0, 1e4, 1e15, 1e30}) {
      Grid<T> x(1, 2), g(1, 2);
      x(0, 0) = T(size);
      x(0, 1) = T(-size);
      g(0, 0) = g(0, 1) = 1;
      const auto out = AllOf(x, g);
      EXPECT_EQ(out[0](0, 0), T(size));
      EXPECT_EQ(out[0](0, 1), 0);
      EXPECT_EQ(out[1](0, 0), 1);
      EXPECT_EQ(out[1](0, 1), 0);
    }
  });
}

TYPED_TEST(ActivationsOf, NanGoesThrough) {
  using T = TypeParam;
  WithEachBackend([&] {
    Grid<T> x(2, 18, 1);
    const Grid<T> g(2, 18, 2);
    x(1, 4) = T{kNaN};
    const auto out = AllOf(x, g);
    for (const size_t i : {0, 1, 2, 4, 5}) {
      EXPECT_TRUE(std::isnan(out[i](1, 4))) << i;
      EXPECT_FALSE(std::isnan(out[i](1, 5))) << i;
      EXPECT_FALSE(std::isnan(out[i](0, 4))) << i;
    }
  });
}

TYPED_TEST(ActivationsOf, InfinityGoesThrough) {
  using T = TypeParam;
  Grid<T> x(1, 2), g(1, 2);
  x(0, 0) = T{kInfinity};
  x(0, 1) = 2;
  g(0, 0) = g(0, 1) = 1;
  const auto out = AllOf(x, g);
  EXPECT_EQ(out[0](0, 0), T{kInfinity});
  EXPECT_EQ(out[2](0, 0), T{kInfinity});
  EXPECT_EQ(out[4](0, 0), T{kInfinity});
}

TYPED_TEST(ActivationsOf, ReluHasNoSlopeAtZero) {
  using T = TypeParam;
  Grid<T> x(1, 3), g(1, 3), dx(1, 3);
  x(0, 0) = 0;
  x(0, 1) = T{-0.0};
  x(0, 2) = std::numeric_limits<T>::denorm_min();
  g(0, 0) = g(0, 1) = g(0, 2) = 5;
  ReluGradient<T>(g.View(), x.View(), dx.View());
  EXPECT_EQ(dx(0, 0), 0);
  EXPECT_EQ(dx(0, 1), 0);
  EXPECT_EQ(dx(0, 2), 5);
}

}  // namespace
}  // namespace numsim
