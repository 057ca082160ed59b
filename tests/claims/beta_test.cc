#include "experiments/claims/beta.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/claims/quadrature.h"

namespace numsim::experiments {
namespace {

// With x = sin(u)^2 the density of the beta distribution has no singularity for a, b >= 1/2.
double BetaByIntegration(double a, double b, double x) {
  const auto density = [&](long double u) {
    return std::pow(std::sin(u), 2 * a - 1) * std::pow(std::cos(u), 2 * b - 1);
  };
  const long double right = 2 * std::atan(1.0L);
  const long double lower = Integral(density, 0, std::asin(std::sqrt((long double){x})), 20);
  return static_cast<double>(lower / Integral(density, 0, right, 20));
}

TEST(RegularizedBeta, IsTheAreaUnderTheDensity) {
  for (const double a : {0.5, 1.0, 1.5, 4.0, 13.5}) {
    for (const double b : {0.5, 1.0, 2.5, 6.0, 20.0}) {
      for (const double x : {1e-6, 0.03, 0.25, 0.5, 0.8, 0.999}) {
        const double expected = BetaByIntegration(a, b, x);
        EXPECT_NEAR(RegularizedBeta(a, b, x, 1 - x) / expected, 1, 1e-12)
            << a << ", " << b << ", " << x;
      }
    }
  }
}

TEST(RegularizedBeta, IsZeroAndOneAtTheEnds) {
  EXPECT_EQ(RegularizedBeta(2, 3, 0, 1), 0);
  EXPECT_EQ(RegularizedBeta(2, 3, 1, 0), 1);
}

TEST(BinomialTail, IsTheSumOfItsTerms) {
  for (const int n : {1, 2, 5, 12}) {
    for (const double p : {0.0, 0.05, 0.5, 0.7, 1.0}) {
      double sum = 0;
      for (int k = n; k >= 0; --k) {
        double term = 1;
        for (int i = 0; i < k; ++i) term *= p * (n - i) / (i + 1);
        for (int i = k; i < n; ++i) term *= 1 - p;
        sum += term;
        EXPECT_NEAR(BinomialTail(k, n, p), sum, 1e-14) << k << " of " << n << ", " << p;
      }
      EXPECT_EQ(BinomialTail(n + 1, n, p), 0);
    }
  }
}

}  // namespace
}  // namespace numsim::experiments
