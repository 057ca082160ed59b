#include "experiments/claims/power.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/elementary.h"

namespace numsim::experiments {
namespace {

constexpr double kInvSqrtTwoPi = 0x1.9884533d43651p-2;

// Returns the mean of f(s) for 0 <= s <= end, where s = sqrt(chi-square / freedom) is the ratio of
// an estimated standard error to the true one. By Simpson's rule over ten standard deviations
// about the mode of its density, s^(freedom - 1) e^(-freedom s^2 / 2) and a constant.
template <typename F>
double MeanOverErrors(int freedom, double end, F f) {
  const double nu = freedom, mode = std::sqrt((nu - 1) / nu), reach = 10 / std::sqrt(2 * nu);
  const double low = std::max(0., mode - reach), high = mode + reach;
  const auto density = [&](double s) {
    if (s <= 0) return freedom == 1 ? 1. : 0.;
    const double powers = freedom == 1 ? 0 : (nu - 1) * Log(s / mode);
    return Exp(std::max(-690., powers - nu * (s * s - mode * mode) / 2));
  };
  const int parts = freedom < 4 ? 800 : freedom < 30 ? 200 : 60;
  const auto integral = [&](double to, auto g) {
    const double step = (to - low) / parts;
    double sum = 0;
    for (int i = 0; i <= parts; ++i) {
      const double s = low + i * step;
      sum += (i == 0 || i == parts ? 1 : i % 2 == 0 ? 2 : 4) * density(s) * g(s);
    }
    return sum * step;
  };
  if (end <= low) return 0;
  return integral(std::min(end, high), f) / integral(high, [](double) { return 1.; });
}

}  // namespace

double NormalTail(double z) noexcept {
  if (z < 0) return 1 - NormalTail(-z);
  if (z > 37) return 0;
  const double density = kInvSqrtTwoPi * Exp(-z * z / 2);
  if (z > 3) {
    double fraction = z;  // density / (z + 1 / (z + 2 / (z + 3 / ...)))
    for (int i = 60; i > 0; --i) fraction = z + i / fraction;
    return density / fraction;
  }
  double term = z, sum = z;  // z + z^3 / 3 + z^5 / (3 5) + ...
  for (int i = 3; term > 1e-17 * sum; i += 2) {
    term *= z * z / i;
    sum += term;
  }
  return 0.5 - density * sum;
}

double PowerBeyond(double shift, double quantile, int freedom) noexcept {
  const double end = std::max(0., (shift + 10) / quantile);  // beyond it the integrand is 0
  return MeanOverErrors(freedom, end, [&](double s) { return NormalTail(quantile * s - shift); });
}

double PowerWithin(double below, double above, double quantile, int freedom) noexcept {
  const double end = std::max(0., (below + above) / 2 / quantile);  // larger errors exclude both
  return MeanOverErrors(freedom, end, [&](double s) {
    return std::max(0., NormalTail(quantile * s - below) - NormalTail(above - quantile * s));
  });
}

int LeastSeeds(const std::function<double(int)>& power) {
  int low = 1, high = 2;  // power(low) is too small
  while (power(high) < kPlannedPower) {
    if (high == kMostSeeds) return kMostSeeds + 1;
    low = high;
    high = std::min(2 * high, kMostSeeds);
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (power(middle) < kPlannedPower ? low : high) = middle;
  }
  return high;
}

}  // namespace numsim::experiments
