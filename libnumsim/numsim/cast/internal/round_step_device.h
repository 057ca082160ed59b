// round_step.h on the device.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/cast/shared/round_step.h"

namespace numsim {

// As RoundStep, bit for bit; every NaN sum counts as a positive NaN. out may be base or direction.
// Requires HasStepRule(plan) (round_step_rule.h).
void RoundStep(const EncodePlan& plan,
               DeviceSpan<const float> base,
               DeviceSpan<const float> direction,
               float factor,
               DeviceSpan<float> out,
               DeviceStream& stream,
               const ArrayRandom& random = {});

}  // namespace numsim
