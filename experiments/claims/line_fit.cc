#include "experiments/claims/line_fit.h"

#include <algorithm>
#include <cmath>

#include "experiments/claims/student_t.h"
#include "numsim/base/require.h"

namespace numsim::experiments {

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
  const int freedom = static_cast<int>(x.size()) - 2;
  const double from_errors = 1.959963984540054 / std::sqrt(sxx);
  const double from_scatter = StudentQuantile(0.975, freedom) * std::sqrt(chi2 / freedom / sxx);
  const double half = std::max(from_errors, from_scatter);
  fit.slope.low = fit.slope.value - half;
  fit.slope.high = fit.slope.value + half;
  return fit;
}

}  // namespace numsim::experiments
