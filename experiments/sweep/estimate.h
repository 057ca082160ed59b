// Estimates how long the trials of an experiment take, to cut it into tasks of about five minutes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments::sweep {

// Returns about how many seconds on two cores a trial of cost 1 takes: by the seconds of the settings'
// preset, or else of the first preset with known seconds. 0 if no preset has them. Costs do not know
// every option, so this can be far off.
double SecondsPerCost(const Experiment& experiment, const Settings& settings);

// Replaces the costs of trials by seconds: each is multiplied by the seconds per cost that trials with
// the same parameters took in earlier runs, whatever their seed, or else all trials there.
// `directories` are result directories of the experiment, with any settings. Returns how many trials
// have earlier ones with the same parameters.
//
// Throws Error naming the directory if it holds no such run, or no finished trial with its seconds.
size_t MeasureCosts(const Experiment& experiment,
                    const std::vector<std::filesystem::path>& directories,
                    std::vector<Trial>& trials);

// Returns a number of tasks that last about five minutes each, between `least` and 1000 (the
// usual limit of a Slurm array) as far as the number of trials allows.
size_t TaskCount(double seconds, size_t trials, size_t least);

}  // namespace numsim::experiments::sweep
