// The vector implementation behind round_step.h. One thread, any length.
#pragma once

#include <cstddef>

#include "numsim/cast/internal/nearest_grid.h"

namespace numsim {

// True if the active backend has the vector fused multiply-add that RoundStepSimd needs.
bool HasFusedSteps();

// Does what RoundStepSerial does with the plan of the grid, for a prefix of the elements, and
// returns its length. The prefix ends at the vector that contains the first NaN sum, or is
// everything if no sum is NaN. Requires HasFusedSteps() and the default floating-point environment.
size_t RoundStepSimd(const NearestGrid& grid,
                     const float* base,
                     const float* direction,
                     float factor,
                     size_t n,
                     float* out);

// Does what RoundFloatStepSerial does, as above.
size_t RoundFloatStepSimd(const NearestGrid& grid,
                          const float* base,
                          const float* direction,
                          float factor,
                          size_t n,
                          float* out);

}  // namespace numsim
