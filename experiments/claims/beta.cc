#include "experiments/claims/beta.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/elementary.h"

namespace numsim::experiments {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p+2;

// Returns ln(1 + x) for -0.5 <= x: the rounding error of 1 + x cancels in the quotient.
double LogOnePlus(double x) {
  const double sum = 1 + x;
  return sum == 1 ? x : Log(sum) * (x / (sum - 1));
}

// Returns ln(ratio), where excess is ratio - 1 and has more digits if the ratio is near 1.
double LogRatio(double ratio, double excess) {
  return ratio < 0.5 || ratio > 2 ? Log(ratio) : LogOnePlus(excess);
}

// Returns ln Gamma(z) - ln(sqrt(2 pi / z) (z / e)^z), the error of Stirling's formula, for z > 0.
double StirlingError(double z) {
  double error = 0;
  for (; z < 12; z += 1) error += (z + 0.5) * LogOnePlus(1 / z) - 1;
  constexpr double kSeries[] = {
      -691. / 360360, 1. / 1188, -1. / 1680, 1. / 1260, -1. / 360, 1. / 12};
  double sum = 0;
  for (const double coefficient : kSeries) sum = sum / (z * z) + coefficient;
  return error + sum / z;
}

}  // namespace

// Stirling's formula turns the powers and the gamma functions, each of which may overflow, into the
// distance of x from the mean a / (a + b).
double BetaPowers(double a, double b, double x, double y) noexcept {
  const double n = a + b;
  const double excess = a > b ? b - n * y : n * x - a;  // from the smaller, more exact product
  const double exponent = a * LogRatio(n * x / a, excess / a) +
                          b * LogRatio(n * y / b, -excess / b) +
                          (StirlingError(n) - StirlingError(a) - StirlingError(b));
  return exponent < -690 ? 0 : std::sqrt(a * (b / n) / kTwoPi) * Exp(exponent);
}

// The continued fraction of A. R. DiDonato and A. H. Morris (ACM Transactions on Mathematical
// Software 18 (3), 1992, equation 9), by Lentz's method: no term of it cancels for large a or b.
double LowerBeta(double a, double b, double x, double y) noexcept {
  const double powers = BetaPowers(a, b, x, y);
  if (powers == 0) return 0;
  const double start = a * y - b * x + 1;
  double fraction = a * start / (a + 1), c = fraction, d = 0;
  for (int i = 1; i < 100000; ++i) {
    const double m = i, odd = a + 2 * m - 1;
    const double numerator = (a + m - 1) * (a + b + m - 1) * m * (b - m) * x * x / (odd * odd);
    const double term =
        m + m * (b - m) * x / odd + (a + m) * (start + m * (1 + y)) / (a + 2 * m + 1);
    d = 1 / (term + numerator * d);
    c = term + numerator / c;
    fraction *= c * d;
    if (std::abs(c * d - 1) < 3e-16) break;
  }
  return powers / fraction;
}

double RegularizedBeta(double a, double b, double x, double y) noexcept {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  return x * (a + b) <= a ? LowerBeta(a, b, x, y) : 1 - LowerBeta(b, a, y, x);
}

double BinomialTail(int least, int trials, double success) noexcept {
  if (least <= 0) return 1;
  if (least > trials) return 0;
  return RegularizedBeta(least, trials - least + 1., success, 1 - success);
}

}  // namespace numsim::experiments
