// ApplyUpdate's commonest case, naive steps of float32 weights in place, in one pass and without
// memory of a tensor's size.
#pragma once

#include <optional>
#include <span>

#include "numsim/updates/update_rule.h"

namespace numsim {

// Takes the step in place and returns what ApplyUpdate of rule naive with float32 weights gives
// apart, with the same bits: weights' = fl(weights + fl(learning_rate u)), u the update with weight
// decay. nullopt, and nothing has changed, for the steps that ApplyUpdate refuses or saturates:
// numbers that are not finite or come near overflow, a step of zeros. Requires equal lengths,
// finite learning_rate >= 0 and weight_decay.
std::optional<UpdateOutcome> TakeNaiveStep(std::span<const float> update,
                                           float learning_rate,
                                           float weight_decay,
                                           std::span<float> weights);

}  // namespace numsim
