// The vector implementation behind round_step.h. One thread, any length.
#pragma once

#include <cstddef>

#include "numsim/cast/internal/nearest_grid.h"

namespace numsim {

// Whether the active backend has the fused multiply-add in vectors that RoundStepSimd is made of.
bool HasFusedSteps();

// As RoundStepSerial with the grid's plan, from the first element on, up to the first whose sum is
// not a number. Returns how many: at least all before the vector of that element.
// Requires HasFusedSteps() and the default floating-point environment.
size_t RoundStepSimd(const NearestGrid& grid,
                     const float* base,
                     const float* direction,
                     float factor,
                     size_t n,
                     float* out);

}  // namespace numsim
