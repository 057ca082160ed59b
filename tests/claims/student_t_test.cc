#include "experiments/claims/student_t.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/claims/quadrature.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

// P(T > t) for t >= 0. T is sqrt(freedom) / tan(b) where b has the density sin(b)^(freedom - 1) on
// (0, pi): areas under that are added up without cancellation, from the largest b downwards as far
// as it is above 1e-25 of its end.
double TailByIntegration(double t, int freedom) {
  const auto area = [&](long double end) {
    const auto density = [&](long double b) {
      return std::exp((freedom - 1) * std::log(std::sin(b) / std::sin(end)));
    };
    long double start = 0;
    if (freedom > 60) {
      const long double slope = (freedom - 1) / std::tan(end);
      start = std::max(0.0L, end - 60 / std::max(slope, std::sqrt(freedom / 2.0L)));
    }
    return std::exp((freedom - 1) * std::log(std::sin(end))) * Integral(density, start, end, 30);
  };
  const long double right = 2 * std::atan(1.0L);
  return static_cast<double>(area(std::atan(std::sqrt(static_cast<long double>(freedom)) / t)) /
                             (2 * area(right)));
}

constexpr double kPoints[] = {
    1e-6, 0.01, 0.3, 0.99, 1, 1.01, 1.6, 2.2, 3, 4.5, 7, 12.7, 40, 300, 5e4, 1e9};

TEST(StudentTail, IsTheAreaUnderTheDensity) {
  for (int freedom = 1; freedom <= 30; ++freedom) {
    for (const double t : kPoints) {
      const double expected = TailByIntegration(t, freedom);
      if (expected < 1e-270) continue;
      EXPECT_NEAR(StudentTail(t, freedom) / expected, 1, 1e-12) << t << ", " << freedom;
    }
  }
}

TEST(StudentTail, IsTheAreaUnderTheDensityForManyDegreesOfFreedom) {
  for (const int freedom : {31, 100, 999, 1001, 20000, 190000}) {
    for (const double t : {0.01, 0.5, 1.0, 1.96, 3.0, 5.0, 7.0}) {
      const double expected = TailByIntegration(t, freedom);
      EXPECT_NEAR(StudentTail(t, freedom) / expected, 1, 1e-12) << t << ", " << freedom;
    }
  }
}

// Closed forms: the tail is atan(1 / t) / pi for one degree of freedom and (1 - t / sqrt(2 + t^2))
// / 2 for two.
TEST(StudentTail, HasItsClosedForms) {
  for (const double t : kPoints) {
    EXPECT_NEAR(StudentTail(t, 1) / (std::atan(1 / t) / std::acos(-1.0)), 1, 1e-13) << t;
    const double root = std::sqrt(2 + t * t);
    EXPECT_NEAR(StudentTail(t, 2) / (1 / (root * (root + t))), 1, 1e-13) << t;
  }
}

TEST(StudentTail, OfMinusTIsTheRest) {
  for (const int freedom : {1, 4, 25, 3000}) {
    EXPECT_EQ(StudentTail(0, freedom), 0.5);
    for (const double t : {1e-9, 0.2, 1.0, 3.0, 80.0}) {
      EXPECT_EQ(StudentTail(-t, freedom), 1 - StudentTail(t, freedom)) << t << ", " << freedom;
    }
  }
}

TEST(StudentTail, TakesSpecialValues) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(StudentTail(kInfinity, 3), 0);
  EXPECT_EQ(StudentTail(-kInfinity, 3), 1);
  EXPECT_TRUE(std::isnan(StudentTail(std::nan(""), 3)));
  EXPECT_EQ(ErrorOf([] { StudentTail(1, 0); }),
            "StudentTail: 0 degrees of freedom, expected at least 1");
}

TEST(StudentQuantile, InvertsTheTail) {
  for (const int freedom : {1, 2, 3, 4, 7, 10, 11, 29, 30, 200, 5000, 190000}) {
    for (const double tail : {1e-100, 1e-12, 1e-7, 5e-4, 0.025, 0.1, 0.3, 0.4999, 0.5 - 1e-9}) {
      const double t = -StudentQuantile(tail, freedom);
      EXPECT_NEAR(StudentTail(t, freedom) / tail, 1, 2e-12) << tail << ", " << freedom;
    }
  }
}

// Near the centre the tail does not determine t. There P(0 < T < t) is t times the density at 0,
// which is 1 / pi for one degree of freedom and sqrt(1/8) for two.
TEST(StudentQuantile, IsExactAlsoNearTheCentre) {
  for (const double above : {0x1p-50, 0x1p-40, 0x1p-30}) {
    EXPECT_NEAR(StudentQuantile(0.5 + above, 1) / (above * std::acos(-1.0)), 1, 1e-12);
    EXPECT_NEAR(StudentQuantile(0.5 - above, 2) / (-above * std::sqrt(8.0)), 1, 1e-12);
  }
}

// Closed forms for one, two and four degrees of freedom.
TEST(StudentQuantile, HasItsClosedForms) {
  EXPECT_NEAR(StudentQuantile(0.975, 1), 1 / std::tan(0.025 * std::acos(-1.0)), 1e-12);
  const double alpha = 4 * 0.975 * (1 - 0.975);
  EXPECT_NEAR(StudentQuantile(0.975, 2), 2 * (0.975 - 0.5) * std::sqrt(2 / alpha), 1e-13);
  const double q = std::cos(std::acos(std::sqrt(alpha)) / 3) / std::sqrt(alpha);
  EXPECT_NEAR(StudentQuantile(0.975, 4), 2 * std::sqrt(q - 1), 1e-13);
}

TEST(StudentQuantile, TakesSpecialValues) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(StudentQuantile(0.5, 3), 0);
  EXPECT_EQ(StudentQuantile(0, 3), -kInfinity);
  EXPECT_EQ(StudentQuantile(1, 3), kInfinity);
  EXPECT_EQ(StudentQuantile(1e-200, 1), -kInfinity);  // -3e199
  EXPECT_EQ(ErrorOf([] { StudentQuantile(0.5, 0); }),
            "StudentQuantile: 0 degrees of freedom, expected at least 1");
  EXPECT_EQ(ErrorOf([] { StudentQuantile(1.5, 3); }), "StudentQuantile: p is 1.5, expected 0 to 1");
  EXPECT_NE(ErrorOf([] { StudentQuantile(std::nan(""), 3); }), "");
}

}  // namespace
}  // namespace numsim::experiments
