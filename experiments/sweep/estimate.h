// Estimates how long an experiment takes, to cut it into tasks of about five minutes.
#pragma once

#include <cstddef>
#include <string>

#include "experiments/core/experiment.h"

namespace numsim::experiments::sweep {

// Returns about how many seconds the trials take on two cores: the seconds of the settings' preset,
// or else of the first preset with known seconds, times the ratio of the trials' costs. 0 if no
// preset has known seconds. Costs do not know every option, so this can be far off.
double EstimateSeconds(const Experiment& experiment, const Settings& settings);

// Returns a number of tasks that last about five minutes each, between `least` and 1000 (the
// usual limit of a Slurm array) as far as the number of trials allows.
size_t TaskCount(double seconds, size_t trials, size_t least);

}  // namespace numsim::experiments::sweep
