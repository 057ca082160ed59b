// ApplyUpdate of host arrays on the device, for backend cuda.
#pragma once

#include "numsim/updates/update_rule.h"

namespace numsim {

// Returns true if the device has that rule for weights of that format, that is, if CheckOnDevice
// (update_device.h) does not throw.
bool ServesOnDevice(const UpdateRule& rule, const FormatSpec& format);

// Copies the arrays to the device, takes the step there and copies the results back. Requires
// ServesOnDevice, at least one weight, and arguments that ApplyUpdate has checked.
UpdateOutcome ApplyUpdateOffloaded(const UpdateRule& rule,
                                   const WeightUpdate& step,
                                   RandomStream random,
                                   UpdateState& state,
                                   std::span<float> new_weights);

}  // namespace numsim
