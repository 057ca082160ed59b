#include "experiments/sweep/estimate.h"

#include <algorithm>
#include <cmath>

#include "experiments/core/completion.h"
#include "experiments/core/settings.h"

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

}  // namespace

double EstimateSeconds(const Experiment& experiment, const Settings& settings) {
  const Preset* const preset = TimedPreset(experiment, settings.preset);
  if (preset == nullptr) return 0;
  const Settings defaults =
      MakeSettings(experiment, preset->name, /*seed=*/0, preset->seeds, /*overrides=*/{});
  return preset->seconds * CostOf(experiment, settings) / CostOf(experiment, defaults);
}

size_t TaskCount(double seconds, size_t trials, size_t least) {
  const double wanted = std::clamp(std::ceil(seconds / kTaskSeconds), 1.0, double{kMostTasks});
  return std::min(trials, std::max(static_cast<size_t>(wanted), least));
}

}  // namespace numsim::experiments::sweep
