#include "experiments/study/fork.h"

#include <algorithm>
#include <string>
#include <utility>

#include "experiments/runner/option_names.h"
#include "numsim/config/fork.h"

namespace numsim::experiments::study {

Option ForkOption() {
  const std::string name(kForkOption);
  return {
      .name = name,
      .quick = "0",
      .paper = "0",
      .help =
          "steps of the baseline, trained once per seed, from whose state all arms go on; 0: all "
          "arms are trained from scratch",
      .optional = true};
}

uint64_t ForkAfter(const Settings& settings) {
  if (!settings.options.contains(std::string(kForkOption))) return 0;
  return static_cast<uint64_t>(settings.GetInteger(kForkOption, 0, kMostSteps));
}

TrainConfig WithFork(const Settings& settings, const TrainConfig& baseline, TrainConfig config) {
  config.fork = {.steps = ForkAfter(settings), .before = KeysBefore(baseline, config)};
  return config;
}

std::function<Arm(const Settings&, const Arm&)> ForksFrom(const std::vector<Axis>& axes,
                                                          Picks picks) {
  for (const Axis& axis : axes) {
    const bool named = std::ranges::count(picks, axis.name, &Pick::axis) > 0;
    if (!named && !axis.baseline.empty()) picks.push_back({axis.name, axis.baseline});
  }
  if (picks.empty()) return {};
  return [axes, picks](const Settings& settings, const Arm& arm) {
    Arm baseline = arm;
    for (const Pick& pick : picks) {
      const auto axis = std::ranges::find(axes, pick.axis, &Axis::name);
      baseline.at(static_cast<size_t>(axis - axes.begin())) =
          pick.of ? pick.of(settings) : pick.name;
    }
    return baseline;
  };
}

}  // namespace numsim::experiments::study
