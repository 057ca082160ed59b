// The most common case of ApplyUpdate, naive steps of float32 weights in place, without working
// memory of a tensor's size.
#pragma once

#include <optional>
#include <span>

#include "numsim/updates/update_rule.h"

namespace numsim {

// Takes the step in place, with the bits and the outcome that ApplyUpdate under rule naive with
// float32 weights gives out of place: weights' = fl32(weights + fl32(learning_rate u)), where u is
// the update with weight decay. Returns nullopt, and changes nothing, for steps that ApplyUpdate
// may refuse or saturate: numbers that are not finite or come near overflow, or a step of zeros.
// Requires equal lengths, finite learning_rate >= 0 and finite weight_decay.
std::optional<UpdateOutcome> TakeNaiveStep(std::span<const float> update,
                                           float learning_rate,
                                           float weight_decay,
                                           std::span<float> weights);

}  // namespace numsim
