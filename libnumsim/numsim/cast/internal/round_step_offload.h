// RoundStep (round_step.h) for host arrays under the backend cuda.
#pragma once

#include <span>

#include "numsim/cast/cast.h"

namespace numsim {

// Copies the operands to the device, computes the steps there and copies the results back.
// Requires HasStepRule(plan) and equal lengths.
void RoundStepOffloaded(const EncodePlan& plan,
                        std::span<const float> base,
                        std::span<const float> direction,
                        float factor,
                        std::span<float> out,
                        const ArrayRandom& random);

}  // namespace numsim
