#include "experiments/claims/power.h"

#include <gtest/gtest.h>

#include <cmath>

#include "experiments/claims/student_t.h"
#include "tests/claims/quadrature.h"

namespace numsim::experiments {
namespace {

TEST(NormalTail, IsTheComplementaryErrorFunction) {
  for (double z = -8; z < 30; z += 0.37) {
    const double expected = std::erfc(z / std::sqrt(2.0)) / 2;
    EXPECT_NEAR(NormalTail(z) / expected, 1, 1e-12) << z;
  }
}

// Without a shift the noncentral t distribution is Student's.
TEST(PowerBeyond, AtTheBoundIsTheLevel) {
  for (const int freedom : {1, 2, 3, 8, 30, 500}) {
    for (const double level : {0.05, 0.025, 0.005}) {
      const double quantile = -StudentQuantile(level, freedom);
      EXPECT_NEAR(PowerBeyond(0, quantile, freedom), level, 1e-4) << freedom;
    }
  }
}

// The noncentral t distribution from the other side: given Z, the chi-square variable must stay
// below a bound. For two degrees of freedom its distribution function is 1 - exp(-c / 2).
TEST(PowerBeyond, IsTheTailOfTheNoncentralDistribution) {
  for (const double shift : {-1.0, 0.5, 2.0, 6.0}) {
    for (const double quantile : {1.5, 4.3}) {
      const auto integrand = [&](long double z) {
        const long double bound = (z + shift) / quantile;  // of S
        return std::exp(-z * z / 2) * (1 - std::exp(-bound * bound));
      };
      const double expected =
          static_cast<double>(Integral(integrand, -shift, 12, 60)) / std::sqrt(2 * std::acos(-1.0));
      EXPECT_NEAR(PowerBeyond(shift, quantile, 2), expected, 1e-4) << shift << ", " << quantile;
    }
  }
}

// The tests from below and from above both succeed, or one fails: for bounds far apart the chances
// of failure add up.
TEST(PowerWithin, OfDistantBoundsLosesTheFailuresOfBoth) {
  for (const int freedom : {3, 10, 100}) {
    const double below = PowerBeyond(6, 2.1, freedom), above = PowerBeyond(7, 2.1, freedom);
    EXPECT_NEAR(PowerWithin(60, 7, 2.1, freedom), above, 1e-4);
    EXPECT_NEAR(PowerWithin(6, 60, 2.1, freedom), below, 1e-4);
    EXPECT_LT(PowerWithin(6, 7, 2.1, freedom), std::min(below, above));
    EXPECT_GT(PowerWithin(6, 7, 2.1, freedom), below + above - 1 - 1e-4);
  }
  EXPECT_LT(PowerWithin(1, 1, 2.1, 100), 1e-4);
}

TEST(LeastSeeds, FindsTheFirstWithEnoughPower) {
  for (const int least : {2, 3, 4, 5, 17, 64, 9999, 10000}) {
    EXPECT_EQ(LeastSeeds([&](int n) { return n >= least ? 0.8 : 0.79; }), least);
  }
  EXPECT_EQ(LeastSeeds([](int) { return 0.5; }), kMostSeeds + 1);
}

}  // namespace
}  // namespace numsim::experiments
