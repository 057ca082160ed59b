#include "experiments/sweep/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/runner/completion.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/settings.h"
#include "numsim/base/error.h"

namespace numsim::experiments::sweep {
namespace {

constexpr double kTaskSeconds = 300;
constexpr size_t kMostTasks = 1000;

double CostOf(const Experiment& experiment, const Settings& settings) {
  double cost = 0;
  for (const Trial& trial : ListTrials(experiment, settings)) cost += trial.cost;
  return cost;
}

// Returns the preset whose seconds are the basis of the estimate, or nullptr.
const Preset* TimedPreset(const Experiment& experiment, const std::string& name) {
  const Preset& own = FindPreset(experiment, name);
  if (own.seconds > 0) return &own;
  for (const Preset& preset : experiment.presets) {
    if (preset.seconds > 0) return &preset;
  }
  return nullptr;
}

using Parameters = std::map<std::string, std::string>;

// The sums of finished trials of earlier runs.
struct Measured {
  double seconds = 0;
  double cost = 0;  // by the experiment

  void Add(double trial_seconds, double trial_cost) {
    seconds += trial_seconds;
    cost += trial_cost;
  }
};

// Adds the finished trials of a result directory.
void AddMeasured(const Experiment& experiment,
                 const std::filesystem::path& directory,
                 Measured& all,
                 std::map<Parameters, Measured>& by_parameters) {
  const Settings settings = ReadSettingsOf(experiment, directory / kSettingsFile).settings;
  const std::vector<Trial> trials = ListTrials(experiment, WithAllSeeds(settings));
  FinishedTrials finished;
  AddFinishedTrials(experiment, trials, directory, finished);
  bool any = false;
  for (const auto& [index, entry] : finished) {
    if (!(entry.seconds > 0)) continue;  // of an older version
    any = true;
    all.Add(entry.seconds, trials[index].cost);
    by_parameters[trials[index].parameters].Add(entry.seconds, trials[index].cost);
  }
  if (!any) {
    throw Error::Format("--costs {}: holds no finished trial with the seconds that it took",
                        directory.string());
  }
}

}  // namespace

double SecondsPerCost(const Experiment& experiment, const Settings& settings) {
  const Preset* const preset = TimedPreset(experiment, settings.preset);
  if (preset == nullptr) return 0;
  const Settings defaults =
      MakeSettings(experiment, preset->name, /*seed=*/0, preset->seeds, /*overrides=*/{});
  return preset->seconds / CostOf(experiment, defaults);
}

size_t MeasureCosts(const Experiment& experiment,
                    const std::vector<std::filesystem::path>& directories,
                    std::vector<Trial>& trials) {
  Measured all;
  std::map<Parameters, Measured> by_parameters;
  for (const std::filesystem::path& directory : directories) {
    AddMeasured(experiment, directory, all, by_parameters);
  }
  size_t known = 0;
  for (Trial& trial : trials) {
    const auto found = by_parameters.find(trial.parameters);
    const Measured& like = found == by_parameters.end() ? all : found->second;
    trial.cost *= like.seconds / like.cost;
    if (&like != &all) ++known;
  }
  return known;
}

size_t TaskCount(double seconds, size_t trials, size_t least) {
  const double wanted = std::clamp(std::ceil(seconds / kTaskSeconds), 1.0, double{kMostTasks});
  return std::min(trials, std::max(static_cast<size_t>(wanted), least));
}

}  // namespace numsim::experiments::sweep
