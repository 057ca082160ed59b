// Tuning: each arm of an experiment is trained at every rate of a grid, on seeds that do not judge.
#pragma once

#include <string>
#include <vector>

#include "experiments/runner/arm_rates.h"
#include "experiments/runner/experiment.h"
#include "experiments/runner/runner.h"

namespace numsim::experiments {

struct TuningReport {
  RunReport run;  // of the rate at which it stopped, or of the last
  std::vector<ArmRate> rates;
};

// Trains the arms at each rate of the grid, in a folder of options.out that is named after the rate, for
// settings.seeds tuning seeds (seeds.h), and writes rates.csv into options.out. No other command continues the folders.
// Keeps, resumes and refuses trials as Run does; settings.seed is not used. Throws Error for an experiment
// that does not choose rates (Experiment::tuning), and for a grid of fewer than three rates, where every
// rate but one is at an end.
TuningReport Tune(const Experiment& experiment,
                  RunOptions options,
                  const std::vector<std::string>& grid);

// Returns the text of a report.
std::string TuningText(const TuningReport& report);

}  // namespace numsim::experiments
