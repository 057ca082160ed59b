// The file with which `numsim train` repeats a trial.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

// Returns the configuration of a trial of a preset as TOML, with a validation at the start and one at the
// end and the loss of every step; `assignments` are NAME=VALUE, as for AddAssignment. Throws Error if
// the trials of the experiment are not such files (RowsOfTrainings::whole), and if there is no such
// trial.
std::string TrialToml(const Experiment& experiment,
                      std::string_view preset,
                      const std::vector<std::string>& assignments,
                      size_t trial);

}  // namespace numsim::experiments
