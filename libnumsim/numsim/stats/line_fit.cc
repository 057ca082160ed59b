#include "numsim/stats/line_fit.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/require.h"

namespace numsim {
namespace {

// Returns the 97.5 % quantile of Student's t: from a table for 1..10 degrees of freedom, beyond by
// the Cornish-Fisher expansion about the normal quantile, with an error below 2.1e-3.
double StudentQuantile(size_t freedom) {
  constexpr double kTable[] = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (freedom <= std::size(kTable)) return kTable[freedom - 1];
  constexpr double z = 1.959963984540054;
  const double n = static_cast<double>(freedom);
  return z + (z * z * z + z) / (4 * n) +
         (5 * z * z * z * z * z + 16 * z * z * z + 3 * z) / (96 * n * n);
}

}  // namespace

LineFit FitLine(std::span<const double> x,
                std::span<const double> y,
                std::span<const double> errors) {
  NUMSIM_REQUIRE(x.size() >= 3, "FitLine: {} points, expected at least 3", x.size());
  RequireSize(y.size(), x.size(), "FitLine", "y");
  RequireSize(errors.size(), x.size(), "FitLine", "errors");
  double w = 0, wx = 0, wy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (errors[i] * errors[i]);
    w += weight;
    wx += weight * x[i];
    wy += weight * y[i];
  }
  const double mean_x = wx / w, mean_y = wy / w;
  double sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (errors[i] * errors[i]);
    sxx += weight * (x[i] - mean_x) * (x[i] - mean_x);
    sxy += weight * (x[i] - mean_x) * (y[i] - mean_y);
  }
  NUMSIM_REQUIRE(sxx > 0, "FitLine: all x equal {}, expected at least two values", x[0]);
  LineFit fit;
  fit.slope.value = sxy / sxx;
  fit.intercept = mean_y - fit.slope.value * mean_x;
  double chi2 = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double residual = (y[i] - fit.intercept - fit.slope.value * x[i]) / errors[i];
    chi2 += residual * residual;
  }
  const size_t freedom = x.size() - 2;
  const double from_errors = 1.959963984540054 / std::sqrt(sxx);
  const double from_scatter =
      StudentQuantile(freedom) * std::sqrt(chi2 / static_cast<double>(freedom) / sxx);
  const double half = std::max(from_errors, from_scatter);
  fit.slope.low = fit.slope.value - half;
  fit.slope.high = fit.slope.value + half;
  return fit;
}

}  // namespace numsim
