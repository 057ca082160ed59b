// The names of options: an experiment's own, and the configuration keys of `numsim train`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

// The option of experiments that train models which takes configuration keys without an option of
// their own: "KEY=VALUE", separated by ';'.
inline constexpr std::string_view kKeysOption = "keys";
// The option by which the arms of a study fork from the state of a baseline.
inline constexpr std::string_view kForkOption = "fork-after";

// Returns the option of the experiment that `name` means: its name, or the configuration key that it
// sets. Throws Error that suggests the nearest name if there is none.
std::string ResolveOption(const Experiment& experiment, std::string_view name);

// Adds NAME=VALUE to the options that were given, by option name. `assignment` sets the option that
// NAME means or, if there is none and the experiment has the option `keys`, the configuration key
// NAME. Throws Error if the text has no '=', if it sets an option for the second time, or if
// NAME is neither an option nor a key.
void AddAssignment(const Experiment& experiment,
                   const std::string& assignment,
                   std::map<std::string, std::string>& given);

}  // namespace numsim::experiments
