// The names of options: an experiment's own, and the configuration keys of `numsim train`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"

namespace numsim::experiments {

// Returns the options that may set a configuration key, the likeliest first: "lr" for
// "schedule.peak", "weight-decay" for "optimizer.weight_decay".
std::vector<std::string> OptionsForKey(std::string_view key);

// Returns the option of the experiment that `name` means: its name, or the configuration key that it
// sets. Throws Error that suggests the nearest name if there is none.
std::string ResolveOption(const Experiment& experiment, std::string_view name);

}  // namespace numsim::experiments
