#include "numsim/ops/shared/temperature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/ops/grid.h"
#include "tests/support/every_backend.h"
#include "tests/support/finite_differences.h"

namespace numsim {
namespace {

constexpr ExponentLimits kLimits{-1, 2};

template <typename T>
Grid<T> Scaled(const Grid<T>& x, T exponent) {
  Grid<T> y = x;
  ScaleByExponential<T>(MatrixSpan<const T>(&exponent, 1, 1), kLimits, y.View());
  EXPECT_TRUE(y.GapsAreUntouched());
  return y;
}

double Dot(const Grid<double>& a, const Grid<double>& b) {
  double sum = 0;
  for (size_t r = 0; r < a.rows(); ++r) {
    for (size_t c = 0; c < a.cols(); ++c) sum += a(r, c) * b(r, c);
  }
  return sum;
}

TEST(ScaleByExponential, IsAFactorWithinItsLimits) {
  const Grid<double> x(3, 5, 1);
  const double expected[][2] = {{0.7, 0.7}, {2.5, 2}, {1e300, 2}, {-1.5, -1}};
  for (const auto& [t, held] : expected) {
    EXPECT_NEAR(Scaled(x, t)(2, 4), std::exp(held) * x(2, 4), 1e-14) << t;
  }
  const Grid<float> narrow(3, 5, 1);
  EXPECT_NEAR(Scaled(narrow, 0.7f)(1, 3), std::exp(0.7) * narrow(1, 3), 1e-6);
  EXPECT_TRUE(std::isnan(Scaled(x, std::numeric_limits<double>::quiet_NaN())(0, 0)));
}

TEST(ScaleByExponentialGradient, IsThatOfTheScaledMatrix) {
  Grid<double> x(3, 5, 2);
  const Grid<double> of_y(3, 5, 3);  // the gradient of the sum of y * of_y
  double t = 0.3, dt = 0;
  Grid<double> g = of_y;
  ScaleByExponentialGradient<double>(MatrixSpan<const double>(&t, 1, 1),
                                     kLimits,
                                     Scaled(x, t).View(),
                                     MatrixSpan<double>(&dt, 1, 1),
                                     g.View());
  EXPECT_TRUE(g.GapsAreUntouched());
  const auto loss = [&] { return Dot(Scaled(x, t), of_y); };
  ExpectGradient("t", std::span(&t, 1), std::span(&dt, 1), loss);
  for (size_t r = 0; r < 3; ++r) {
    ExpectGradient("x", std::span(&x(r, 0), 5), std::span(&g(r, 0), 5), loss);
  }
}

// The gradient at t where that of the sum over y, which is 1 x e^t, is `sign`.
double GradientAt(double t, double sign) {
  Grid<double> one(1, 1), g(1, 1);
  one(0, 0) = 1;
  g(0, 0) = sign;
  double dt = -77;
  ScaleByExponentialGradient<double>(MatrixSpan<const double>(&t, 1, 1),
                                     kLimits,
                                     Scaled(one, t).View(),
                                     MatrixSpan<double>(&dt, 1, 1),
                                     g.View());
  EXPECT_NEAR(g(0, 0), sign * std::exp(std::min(2.0, std::max(-1.0, t))), 1e-14);
  return dt;
}

TEST(ScaleByExponentialGradient, AtALimitLeadsBackOnly) {
  for (const double t : {2.0, 3.0}) {
    EXPECT_EQ(GradientAt(t, -1), 0);  // a step would raise t
    EXPECT_NEAR(GradientAt(t, 1), std::exp(2.0), 1e-14);
  }
  for (const double t : {-1.0, -4.0}) {
    EXPECT_EQ(GradientAt(t, 1), 0);
    EXPECT_NEAR(GradientAt(t, -1), -std::exp(-1.0), 1e-14);
  }
}

TEST(ScaleByExponentialGradient, DoesNotDependOnThreadsOrTarget) {
  const Grid<float> y(300, 130, 4), of_y(300, 130, 5);
  const float t = 0.4f;
  float expected = 0;
  WithEachBackend([&] {
    for (const int threads : {1, 2, 4}) {
      SetThreadCount(threads);
      float dt = 0;
      Grid<float> g = of_y;
      ScaleByExponentialGradient<float>(MatrixSpan<const float>(&t, 1, 1),
                                        kLimits,
                                        y.View(),
                                        MatrixSpan<float>(&dt, 1, 1),
                                        g.View());
      if (expected == 0) expected = dt;
      EXPECT_EQ(dt, expected);
    }
  });
}

}  // namespace
}  // namespace numsim
