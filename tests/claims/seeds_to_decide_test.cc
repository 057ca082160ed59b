// The number of seeds that a verdict names, against powers computed in another way.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "experiments/claims/student_t.h"
#include "experiments/claims/verdict.h"
#include "tests/claims/quadrature.h"

namespace numsim::experiments {
namespace {

// Two arms over four seeds whose gaps have the given mean and the standard deviation sqrt(2).
OutcomeTable WithGap(double gap) {
  OutcomeTable table = {{"0", "1"}, 4, std::vector<double>(4, 0.0)};
  const double scale = std::sqrt(2 * 3 / 4.);
  for (const double sign : {1, 1, -1, -1}) table.values.push_back(gap + scale * sign);
  return table;
}

int SeedsFor(double gap, const TestLevel& level = {}) {
  return TestClaim({.contrasts = {Gap("1", "0")}}, WithGap(gap), level).seeds_to_decide;
}

// Sample sizes of the paired t test for a power of 0.8 at 5 %, as tables and programs give them for
// the effect sizes "small", "medium" and "large". The effect size is the gap over the standard
// deviation of paired gaps, which is sqrt(2) here.
TEST(SeedsToDecide, OfTwoArmsAreThoseOfThePairedTest) {
  EXPECT_EQ(SeedsFor(0.2 * std::sqrt(2.)), 199);
  EXPECT_EQ(SeedsFor(0.5 * std::sqrt(2.)), 34);
  EXPECT_EQ(SeedsFor(0.8 * std::sqrt(2.)), 15);
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

// Freedoms are even: the powers of the seeds just before and at the named number are computed if it is
// odd, and otherwise those beside it.
TEST(SeedsToDecide, AreTheFewestWithThatPower) {
  for (const double gap : {0.5, 0.8, 1.1, 1.7, 2.5, 3.5}) {
    for (const TestLevel& level : {TestLevel{}, TestLevel{.looks = 2, .primary = 3}}) {
      const double alpha = 0.05 / level.looks / level.primary;
      const auto power = [&](int seeds) {
        return PowerOf(
            gap / std::sqrt(2. / seeds), -StudentQuantile(alpha / 2, seeds - 1), seeds - 1);
      };
      const int seeds = SeedsFor(gap, level), odd = seeds % 2;
      EXPECT_LT(power(seeds - 2 + 1 - odd), 0.8) << gap;
      EXPECT_GE(power(seeds + 1 - odd), 0.8) << gap;
    }
  }
}

// An estimate at its margin would never be decided, and two seeds show the largest effects.
TEST(SeedsToDecide, AreBounded) {
  EXPECT_EQ(SeedsFor(0), 10001);
  EXPECT_EQ(SeedsFor(0.01), 10001);
  EXPECT_LT(SeedsFor(0.05), 10000);
  EXPECT_EQ(SeedsFor(1000), 2);
  EXPECT_EQ(SeedsFor(1, {.plan = false}), 0);
}

}  // namespace
}  // namespace numsim::experiments
