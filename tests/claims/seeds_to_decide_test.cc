// The number of seeds that a verdict names, against powers computed in another way.
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/claims/student_t.h"
#include "experiments/claims/verdict.h"
#include "tests/claims/quadrature.h"

namespace numsim::experiments {
namespace {

// Two or three arms over four seeds with the given gap of the first two and the residual standard
// deviation 1. All contrasts have the same share of the residuals.
OutcomeTable WithGap(double gap, int arms) {
  constexpr double kFirst[] = {1, -1, 1, -1}, kSecond[] = {1, 1, -1, -1};
  const double scale = arms == 2 ? std::sqrt(3 / 8.) : std::sqrt(6 / 48.);
  OutcomeTable table = {{}, 4, {}};
  for (int arm = 0; arm < arms; ++arm) {
    table.arms.push_back(std::to_string(arm));
    for (int seed = 0; seed < 4; ++seed) {
      const double half = arm == 0 ? -1 : arm == 1 ? 1 : 0;
      const double rest = arms == 2 ? 0 : arm == 2 ? -2 : 1;
      const double residual =
          rest * kFirst[seed] + (arms == 2 ? 1 : std::sqrt(3.)) * half * kSecond[seed];
      table.values.push_back(gap * (arm == 1) + scale * residual);
    }
  }
  return table;
}

int SeedsFor(double gap, int arms, const TestLevel& level = {}) {
  return TestClaim({.contrasts = {Gap("1", "0")}}, WithGap(gap, arms), level).seeds_to_decide;
}

// Sample sizes of the paired t test for a power of 0.8 at 5 %, as tables and programs give them for
// the effect sizes "small", "medium" and "large". The effect size is the gap over the standard
// deviation of paired gaps, which is sqrt(2) here.
TEST(SeedsToDecide, OfTwoArmsAreThoseOfThePairedTest) {
  EXPECT_EQ(SeedsFor(0.2 * std::sqrt(2.), 2), 199);
  EXPECT_EQ(SeedsFor(0.5 * std::sqrt(2.), 2), 34);
  EXPECT_EQ(SeedsFor(0.8 * std::sqrt(2.), 2), 15);
}

// The power of one test with an even number of degrees of freedom: given the normal estimate, the
// chi-square variable must stay below a bound. Its upper tail is e^-x times the sum of x^k / k! for
// k < freedom / 2, with half of the bound as x.
double PowerOf(double shift, double quantile, int freedom) {
  const auto integrand = [&](long double z) {
    const long double x = freedom / 2. * std::pow((z + shift) / quantile, 2);
    long double term = std::exp(-x), tail = 0;
    for (int k = 0; k < freedom / 2; term *= x / ++k) tail += term;
    return std::exp(-z * z / 2) * (1 - tail);
  };
  return static_cast<double>(Integral(integrand, -shift, 10, 20)) / std::sqrt(2 * std::acos(-1.));
}

TEST(SeedsToDecide, OfThreeArmsUseTheFreedomOfAllOfThem) {
  for (const double gap : {0.5, 0.8, 1.1, 1.7, 2.5, 3.5, 6.0}) {
    for (const TestLevel& level : {TestLevel{}, TestLevel{.looks = 2, .primary = 3}}) {
      const double alpha = 0.05 / level.looks / level.primary;
      int expected = 2;
      while (PowerOf(gap / std::sqrt(2. / expected),
                     -StudentQuantile(alpha / 2, 2 * (expected - 1)),
                     2 * (expected - 1)) < 0.8) {
        ++expected;
      }
      EXPECT_EQ(SeedsFor(gap, 3, level), expected) << gap;
    }
  }
}

// An estimate at its margin would never be decided, and two seeds show the largest effects.
TEST(SeedsToDecide, AreBounded) {
  EXPECT_EQ(SeedsFor(0, 3), 10001);
  EXPECT_EQ(SeedsFor(0.01, 3), 10001);
  EXPECT_LT(SeedsFor(0.05, 3), 10000);
  EXPECT_EQ(SeedsFor(1000, 3), 2);
  EXPECT_EQ(SeedsFor(1, 3, {.plan = false}), 0);
}

}  // namespace
}  // namespace numsim::experiments
