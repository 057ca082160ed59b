#include "experiments/claims/line_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

constexpr double kZ = 1.959963984540054;

TEST(FitLine, FindsAnExactLineWhateverTheErrors) {
  const std::vector<double> x = {-3, 0, 1, 4, 10};
  for (double slope : {0.0, 2.0, -0.75}) {
    std::vector<double> y;
    for (double at : x) y.push_back(5 + slope * at);
    for (const std::vector<double>& errors :
         {std::vector<double>{1, 1, 1, 1, 1}, std::vector<double>{0.01, 5, 1, 0.3, 100}}) {
      const LineFit fit = FitLine(x, y, errors);
      EXPECT_NEAR(fit.slope.value, slope, 1e-13);
      EXPECT_NEAR(fit.intercept, 5.0, 1e-12);
    }
  }
}

TEST(FitLine, OfAnExactLineIsAsUncertainAsTheErrors) {
  const std::vector<double> x = {0, 1, 2, 3};
  const std::vector<double> y = {1, 3, 5, 7};
  const std::vector<double> errors(4, 0.5);
  const LineFit fit = FitLine(x, y, errors);
  // sxx = 5 / 0.25.
  EXPECT_NEAR(fit.slope.high - fit.slope.value, kZ * 0.5 / std::sqrt(5.0), 1e-12);
  EXPECT_NEAR(fit.slope.value - fit.slope.low, kZ * 0.5 / std::sqrt(5.0), 1e-12);
}

// Weights 1, 1, 1/4: sums w = 9/4, wx = 3/2, wy = 5/4; with means 2/3 and 5/9
// sxx = 4/9 + 1/9 + 4/9 = 1 and sxy = 10/27 + 4/27 + 4/27 = 2/3.
TEST(FitLine, WeighsPointsByTheirErrors) {
  const std::vector<double> x = {0, 1, 2};
  const std::vector<double> y = {0, 1, 1};
  const LineFit equal = FitLine(x, y, std::vector<double>{1, 1, 1});
  EXPECT_NEAR(equal.slope.value, 0.5, 1e-15);
  EXPECT_NEAR(equal.intercept, 1.0 / 6, 1e-15);
  const LineFit weighted = FitLine(x, y, std::vector<double>{1, 1, 2});
  EXPECT_NEAR(weighted.slope.value, 2.0 / 3, 1e-15);
  EXPECT_NEAR(weighted.intercept, 1.0 / 9, 1e-15);
}

TEST(FitLine, OfAScatterLargerThanTheErrorsIsAsUncertainAsTheScatter) {
  const std::vector<double> x = {0, 1, 2};
  const std::vector<double> y = {0, 1, 1};
  const LineFit fit = FitLine(x, y, std::vector<double>{1e-3, 1e-3, 1e-3});
  // Residuals -1/6, 1/3, -1/6: their sum of squares is 1/6; t with one degree of freedom.
  const double t = 1 / std::tan(0.025 * std::acos(-1.0));
  EXPECT_NEAR(fit.slope.high - fit.slope.value, t * std::sqrt(1.0 / 6 / 2), 1e-9);
}

TEST(FitLine, DoesNotDependOnTheUnitOfTheErrorsButInItsInterval) {
  const std::vector<double> x = {1, 2, 3, 5};
  const std::vector<double> y = {2, 1, 4, 3};
  const LineFit fine = FitLine(x, y, std::vector<double>{1e-3, 2e-3, 1e-3, 3e-3});
  const LineFit coarse = FitLine(x, y, std::vector<double>{1e3, 2e3, 1e3, 3e3});
  EXPECT_NEAR(fine.slope.value, coarse.slope.value, 1e-12);
  EXPECT_GT(coarse.slope.high, fine.slope.high);
}

// The share of simulated lines whose interval holds the slope. `stated` is the error given to the
// fit, in units of the true one.
double Coverage(size_t points, double stated) {
  constexpr size_t kLines = 4000;
  std::vector<float> noise(kLines * points);
  FillNormal({.seed = 17, .stream = points}, 0, noise);
  size_t hits = 0;
  for (size_t line = 0; line < kLines; ++line) {
    std::vector<double> x, y, errors;
    for (size_t i = 0; i < points; ++i) {
      const double error = 0.1 * static_cast<double>(1 + i % 3);
      x.push_back(static_cast<double>(i));
      y.push_back(1 - 0.5 * x.back() + error * static_cast<double>(noise[line * points + i]));
      errors.push_back(stated * error);
    }
    const Estimate slope = FitLine(x, y, errors).slope;
    hits += slope.low <= -0.5 && -0.5 <= slope.high;
  }
  return static_cast<double>(hits) / kLines;
}

// Errors stated a hundred times too small leave the scatter alone to judge by: Student's t.
TEST(FitLine, TheScattersIntervalHoldsTheSlopeNineteenTimesOutOfTwenty) {
  for (size_t points : {3, 4, 7, 12, 13, 20, 60}) {
    EXPECT_NEAR(Coverage(points, 0.01), 0.95, 0.012) << points << " points";
  }
}

// P(|T| <= t): the density of Student's t is that of sqrt(n) tan(a) where a has the density
// cos(a)^(n - 1). By Simpson's rule.
double StudentInside(double t, double freedom) {
  const auto integral = [&](double end) {
    constexpr int kParts = 200;
    double sum = 0;
    for (int i = 0; i <= kParts; ++i) {
      const double weight = i == 0 || i == kParts ? 1 : i % 2 == 0 ? 2 : 4;
      sum += weight * std::pow(std::cos(end * i / kParts), freedom - 1);
    }
    return sum * end;
  };
  return integral(std::atan(t / std::sqrt(freedom))) / integral(std::acos(0.0));
}

double StudentOf95Percent(double freedom) {
  double low = 0, high = 100;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (StudentInside(middle, freedom) < 0.95 ? low : high) = middle;
  }
  return low;
}

// Half of the interval over the standard error that the scatter gives.
TEST(FitLine, TheScattersIntervalIsStudents) {
  EXPECT_NEAR(StudentOf95Percent(1), 1 / std::tan(std::acos(0.0) / 20), 1e-6);
  for (size_t freedom = 1; freedom <= 30; ++freedom) {
    const size_t n = freedom + 2;
    std::vector<double> x, y;
    for (size_t i = 0; i < n; ++i) {
      x.push_back(static_cast<double>(i));
      y.push_back(i % 3 == 0 ? 1 : -0.5);
    }
    const LineFit fit = FitLine(x, y, std::vector<double>(n, 1e-6));
    const double mean = static_cast<double>(n - 1) / 2;
    double residuals = 0, spread = 0;
    for (size_t i = 0; i < n; ++i) {
      residuals += std::pow(y[i] - fit.intercept - fit.slope.value * x[i], 2);
      spread += std::pow(x[i] - mean, 2);
    }
    const double error = std::sqrt(residuals / static_cast<double>(freedom) / spread);
    const double t = StudentOf95Percent(static_cast<double>(freedom));
    EXPECT_NEAR((fit.slope.high - fit.slope.value) / error, t, 1e-6) << freedom;
  }
}

// The larger of two intervals: at least as good as either.
TEST(FitLine, TheLargerIntervalHoldsTheSlopeAtLeastAsOften) {
  for (size_t points : {3, 7, 20}) {
    const double coverage = Coverage(points, 1);
    EXPECT_GT(coverage, 0.945) << points << " points";
    EXPECT_LT(coverage, 0.995) << points << " points";
  }
}

TEST(FitLine, TooFewPointsUnequalLengthsAndOneXThrow) {
  const std::vector<double> two = {1, 2}, three = {1, 2, 3}, same = {4, 4, 4};
  EXPECT_EQ(ErrorOf([&] { FitLine(two, two, two); }), "FitLine: 2 points, expected at least 3");
  EXPECT_EQ(ErrorOf([&] { FitLine(three, three, two); }),
            "FitLine: 'errors' has 2 elements, expected 3");
  EXPECT_EQ(ErrorOf([&] { FitLine(three, two, three); }),
            "FitLine: 'y' has 2 elements, expected 3");
  EXPECT_EQ(ErrorOf([&] { FitLine(same, three, three); }),
            "FitLine: all x equal 4, expected at least two values");
}

}  // namespace
}  // namespace numsim::experiments
