#include "experiments/claims/paired.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/base/require.h"

namespace numsim::experiments {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Returns the rounding error of a value of the contrast, at most.
double RoundingOf(std::span<const double> outcomes, int seeds, std::span<const double> weights) {
  double rounding = 0;
  for (size_t arm = 0; arm < weights.size(); ++arm) {
    for (int seed = 0; seed < seeds; ++seed) {
      const double size = std::abs(weights[arm] * outcomes[arm * seeds + seed]);
      if (std::isfinite(size)) rounding = std::max(rounding, size);
    }
  }
  return 0x1p-46 * rounding * static_cast<double>(weights.size());
}

}  // namespace

std::vector<double> OverSeeds(std::span<const double> outcomes,
                              int seeds,
                              std::span<const double> weights) {
  RequireSize(
      outcomes.size(), weights.size() * static_cast<size_t>(seeds), "OverSeeds", "outcomes");
  std::vector<double> values;
  for (int seed = 0; seed < seeds; ++seed) {
    double value = 0;
    for (size_t arm = 0; arm < weights.size(); ++arm) {
      if (weights[arm] != 0) value += weights[arm] * outcomes[arm * seeds + seed];
    }
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

ContrastEstimate EstimateContrast(std::span<const double> outcomes,
                                  int seeds,
                                  std::span<const double> weights) {
  const std::vector<double> values = OverSeeds(outcomes, seeds, weights);
  if (values.empty()) return {kNaN, kNaN, 0};
  const auto size = static_cast<double>(values.size());
  const double rounding = RoundingOf(outcomes, seeds, weights);
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / size;
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (squares <= rounding * rounding * size) squares = 0;
  if (std::abs(mean) <= rounding) mean = 0;
  if (values.size() == 1) return {mean, kNaN, 0};
  return {mean, std::sqrt(squares / (size - 1) / size), static_cast<int>(values.size()) - 1};
}

}  // namespace numsim::experiments
