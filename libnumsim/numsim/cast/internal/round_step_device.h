// The functions of round_step.h for arrays in device memory.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/cast/shared/round_step.h"

namespace numsim {

// Writes what RoundStep of round_step.h writes, bit for bit. Every NaN sum counts as a positive
// NaN. `out` may be `base` or `direction`. Requires HasStepRule(plan) (round_step_rule.h).
void RoundStep(const EncodePlan& plan,
               DeviceSpan<const float> base,
               DeviceSpan<const float> direction,
               float factor,
               DeviceSpan<float> out,
               DeviceStream& stream,
               const ArrayRandom& random = {});

}  // namespace numsim
