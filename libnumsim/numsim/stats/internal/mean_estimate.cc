#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/stats/line_fit.h"
#include "numsim/stats/moments.h"

namespace numsim {

Estimate MeanOf(std::span<const double> values) {
  NUMSIM_REQUIRE(!values.empty(), "MeanOf: no values, expected at least one");
  double sum = 0;
  for (const double value : values) sum += value;
  if (!std::isfinite(sum)) return {sum, sum, sum};
  const double mean = sum / static_cast<double>(values.size());
  if (values.size() == 1) return {mean, std::nan(""), std::nan("")};
  const double first = values.front();
  if (std::all_of(values.begin(), values.end(), [&](double v) { return v == first; })) {
    return {first, first, first};
  }
  // The mean is the slope of a line through the points (1, value) that a small error holds at the
  // origin. With n values the fit has n - 1 degrees of freedom, as the interval of a mean needs.
  const double scale = std::max(
      1e-300, std::abs(*std::max_element(values.begin(), values.end(), [](double a, double b) {
        return std::abs(a) < std::abs(b);
      })));
  std::vector<double> x = {0}, y = {0}, errors = {1e-15};
  for (const double value : values) {
    x.push_back(1);
    y.push_back(value / scale);
    errors.push_back(1e-8);
  }
  const Estimate slope = FitLine(x, y, errors).slope;
  return {
      mean, mean + scale * (slope.low - slope.value), mean + scale * (slope.high - slope.value)};
}

}  // namespace numsim
