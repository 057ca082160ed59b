// How large is the mean of k random signs? A small experiment to copy
// (docs/adding-an-experiment.md).
#pragma once

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

Experiment SignMean();

}  // namespace numsim::experiments
