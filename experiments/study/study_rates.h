// Rates of the arms of a study that were chosen on other seeds (--rates).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {

// The option --rates.
Option RatesOption();
// Returns the tuning of a study; one without a table if it does not choose rates.
RateTuning TuningOf(const std::shared_ptr<const Study>& study);

// Returns the name of an arm in rates.csv: its choices, without that of a rate.
std::string RateArm(const Study& study, const Arm& arm);
// Returns the rate that was chosen for an arm; nothing if the settings have no rates. Throws Error naming
// the option if they lack this arm, and if the arms have several rates of their own.
std::optional<std::string> ChosenRate(const Study& study, const Settings& settings, const Arm& arm);
// Returns why claims on these arms are not tested: the rate of one is at the end of the grid; "" if none
// is.
std::string RateObstacle(const Study& study,
                         const Settings& settings,
                         const std::vector<Arm>& arms);

}  // namespace numsim::experiments::study
