// Means of a few values, such as one per seed.
#pragma once

#include <span>

#include "numsim/stats/moments.h"

namespace numsim::experiments {

// Returns the mean with the 95 % interval of Student's t. For a single value, low and high are NaN.
// If the sum of the values is not finite, all three results are that sum. Throws Error if there
// is no value.
Estimate MeanOf(std::span<const double> values);

}  // namespace numsim::experiments
