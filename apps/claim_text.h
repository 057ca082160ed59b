// The claims of an experiment as `numsim describe` prints them.
#pragma once

#include "experiments/runner/experiment.h"

namespace numsim::apps {

// Prints the claims with contrasts and margins, and the settings of the paper.
void PrintClaims(const experiments::Experiment& experiment);

}  // namespace numsim::apps
