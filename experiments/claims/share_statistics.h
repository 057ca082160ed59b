// Tests of shares of diverged runs by the binomial distribution.
#pragma once

#include "experiments/claims/verdict.h"

namespace numsim::experiments {

// Sets contrasts, confidence, p_supported, p_contradicted and seeds_to_decide of `result` for the
// claim that at least `share` of runs diverges, of which `diverged` of `runs` did. `alpha` is the
// level of one look, `planned_alpha` that of seeds_to_decide; 0 leaves that out. Requires at least
// one run.
void TestShare(
    double share, int diverged, int runs, double alpha, double planned_alpha, ClaimResult& result);

}  // namespace numsim::experiments
