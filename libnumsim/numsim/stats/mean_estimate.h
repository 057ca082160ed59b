// Means of a few values, such as one a seed.
#pragma once

#include <span>

#include "numsim/stats/moments.h"

namespace numsim {

// Mean with the 95 % interval of Student's t; one value: low and high NaN. Where a value is not
// finite all three are infinite (NaN for a NaN). Requires at least one value.
Estimate MeanOf(std::span<const double> values);

}  // namespace numsim
