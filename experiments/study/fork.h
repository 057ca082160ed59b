// Forked arms: trainings of a study that go on from the state of a baseline (--fork-after).
#pragma once

#include <cstdint>

#include "experiments/study/study.h"

namespace numsim::experiments::study {

// The option --fork-after.
Option ForkOption();
// Returns its value: the steps of the baseline, 0 for trainings from scratch.
uint64_t ForkAfter(const Settings& settings);

// Returns `config` of an arm as one that goes on from the state of `baseline` after --fork-after steps.
// Throws KeyError for a key that a fork keeps.
TrainConfig WithFork(const Settings& settings, const TrainConfig& baseline, TrainConfig config);

// Returns the function of Study::forks_from. The arm that it returns has the values of `picks`, on every
// other axis the baseline, and the value of the given arm where an axis has no baseline. Empty if no axis
// has a baseline and `picks` is empty.
std::function<Arm(const Settings&, const Arm&)> ForksFrom(const std::vector<Axis>& axes,
                                                          Picks picks);

}  // namespace numsim::experiments::study
