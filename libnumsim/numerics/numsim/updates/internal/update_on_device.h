// Update rules on a device.
#pragma once

#include "numsim/updates/update_rule.h"

namespace numsim {

// Returns true if CheckOnDevice does not throw.
bool ServesOnDevice(const UpdateRule& rule, const FormatSpec& format);

// Does what ApplyUpdate does for weights of a device. Requires ServesOnDevice and arguments that
// ApplyUpdate has checked. Only in builds with CUDA.
UpdateOutcome ApplyUpdateOnDevice(const UpdateRule& rule,
                                  const WeightUpdate& step,
                                  RandomStream random,
                                  UpdateState& state,
                                  MatrixSpan<float> new_weights);

// Does the same for weights of the host on the calling thread's device, with copies of everything.
UpdateOutcome ApplyUpdateOffloaded(const UpdateRule& rule,
                                   const WeightUpdate& step,
                                   RandomStream random,
                                   UpdateState& state,
                                   MatrixSpan<float> new_weights);

}  // namespace numsim
