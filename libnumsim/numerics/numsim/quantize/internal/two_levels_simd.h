// Scales of many groups under two levels (ScaleLevels), in vectors.
#pragma once

#include <cstddef>

#include "numsim/quantize/scale.h"

namespace numsim {

// Writes the scales and inverse scales of n groups with these absolute maxima, as maker(absmax[i]).
// `scales` may be `absmax`. Requires a maker that has Levels, and the default floating-point environment.
void MakeTwoLevelScales(
    const ScaleFactory& maker, const float* absmax, size_t n, float* scales, float* inv_scales);

}  // namespace numsim
