#include "experiments/claims/mean.h"

#include <algorithm>
#include <cmath>

#include "experiments/claims/student_t.h"
#include "numsim/base/require.h"

namespace numsim::experiments {

Estimate MeanOf(std::span<const double> values) {
  NUMSIM_REQUIRE(!values.empty(), "MeanOf: no values, expected at least one");
  double sum = 0;
  for (const double value : values) sum += value;
  if (!std::isfinite(sum)) return {sum, sum, sum};
  const double size = static_cast<double>(values.size()), mean = sum / size;
  if (values.size() == 1) return {mean, std::nan(""), std::nan("")};
  const double first = values.front();
  if (std::all_of(values.begin(), values.end(), [&](double v) { return v == first; })) {
    return {first, first, first};
  }
  double largest = 0, squares = 0;  // relative to the largest, so that squares cannot overflow
  for (const double value : values) largest = std::max(largest, std::abs(value - mean));
  for (const double value : values) {
    squares += (value - mean) / largest * ((value - mean) / largest);
  }
  const double freedom = size - 1;
  const double half = StudentQuantile(0.975, static_cast<int>(freedom)) * largest *
                      std::sqrt(squares / freedom / size);
  return {mean, mean - half, mean + half};
}

}  // namespace numsim::experiments
