// The vector implementation of stochastic steps behind round_step.h. One thread, any length.
#pragma once

#include <cstddef>

#include "numsim/cast/cast.h"
#include "numsim/cast/internal/stochastic_grid.h"

namespace numsim {

// True if the active backend has the vectors that StochasticStepSimd needs.
bool HasStochasticSteps();

// Does what RoundStepSerial does with the plan of the grid, for a prefix of the elements, and
// returns its length. The prefix ends at the vector that contains the first NaN sum, or is
// everything if no sum is NaN. Requires HasStochasticSteps() and the default floating-point
// environment.
size_t StochasticStepSimd(const StochasticGrid& grid,
                          const float* base,
                          const float* direction,
                          float factor,
                          size_t n,
                          float* out,
                          const ArrayRandom& random);

}  // namespace numsim
