#include "experiments/runner/trial_toml.h"

#include <fmt/format.h>

#include <map>

#include "experiments/runner/option_names.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "numsim/base/error.h"

namespace numsim::experiments {

std::string TrialToml(const Experiment& experiment,
                      std::string_view preset,
                      const std::vector<std::string>& assignments,
                      size_t trial) {
  if (!experiment.rows.whole) {
    throw Error::Format("--trial: a trial of {} is no single file of `numsim train`",
                        experiment.name);
  }
  std::map<std::string, std::string> given;
  for (const std::string& assignment : assignments) AddAssignment(experiment, assignment, given);
  const int seeds = FindPreset(experiment, preset).seeds;
  const Settings settings = MakeSettings(experiment, preset, 0, seeds, given);
  const std::vector<Trial> trials = experiment.trials(settings);
  if (trial >= trials.size()) {
    throw Error::Format("--trial {}: expected 0 to {}", trial, trials.size() - 1);
  }
  const std::vector<TrainingOfRow> trainings = experiment.rows.trainings(settings, trials[trial]);
  if (trainings.empty()) {
    throw Error::Format("--trial {}: {} trains nothing", trial, trials[trial].label);
  }
  if (!experiment.rows.whole(settings, trials[trial])) {
    throw Error::Format(
        "--trial {}: '{}' is no single file of `numsim train`", trial, trials[trial].label);
  }
  TrainConfig config = trainings.front().config;
  config.train.valid_every = config.train.steps;
  config.telemetry.every = 1;
  return fmt::format("# {}, preset {}, trial {}: {}\n{}",
                     experiment.name,
                     preset,
                     trial,
                     trials[trial].label,
                     WriteTrainConfig(config));
}

}  // namespace numsim::experiments
