// ApplyUpdate of arrays of the host under the backend cuda.
#pragma once

#include "numsim/updates/update_rule.h"

namespace numsim {

// Whether the device has that rule for weights of that format (CheckOnDevice, update_device.h).
bool ServesOnDevice(const UpdateRule& rule, const FormatSpec& format);

// Copies in, runs on the device, copies out. Requires ServesOnDevice, weights, and what ApplyUpdate
// has checked.
UpdateOutcome ApplyUpdateOffloaded(const UpdateRule& rule,
                                   const WeightUpdate& step,
                                   RandomStream random,
                                   UpdateState& state,
                                   std::span<float> new_weights);

}  // namespace numsim
