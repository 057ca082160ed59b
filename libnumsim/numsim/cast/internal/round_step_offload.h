// RoundStep of arrays of the host under the backend cuda.
#pragma once

#include <span>

#include "numsim/cast/cast.h"

namespace numsim {

// Copies in, runs on the device, copies out. Requires HasStepRule(plan) and equal lengths.
void RoundStepOffloaded(const EncodePlan& plan,
                        std::span<const float> base,
                        std::span<const float> direction,
                        float factor,
                        std::span<float> out,
                        const ArrayRandom& random);

}  // namespace numsim
