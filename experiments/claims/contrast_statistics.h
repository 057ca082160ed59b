// Tests of contrasts of arms by Student's t.
#pragma once

#include <vector>

#include "experiments/claims/two_way.h"
#include "experiments/claims/verdict.h"

namespace numsim::experiments {

// A contrast is tested without pooling if, were all arms alike, its own scatter would be as large
// with less than this probability. A preliminary test has to be this lenient, because few seeds
// say little about variances: of claims at the margin on an arm with five times the scatter of
// seven others, pooling alone decides 30 % wrongly, this rule 5 to 9 %, a rule at 1 % 15 to 25 %
// (3 and 5 seeds). If all arms are alike, the rule makes the mean interval 7 (10 seeds) to 40 %
// (3 seeds) wider.
inline constexpr double kUnpooledBelow = 0.2;

// Sets contrasts, confidence, p_supported, p_contradicted and seeds_to_decide of `result` for a
// claim on contrasts. `weights` has one row per contrast, of one weight per arm of the fit.
// `alpha` is the level of one look, `planned_alpha` that of seeds_to_decide; 0 leaves that out.
void TestContrasts(const ClaimTest& test,
                   const TwoWayFit& fit,
                   const std::vector<std::vector<double>>& weights,
                   double alpha,
                   double planned_alpha,
                   ClaimResult& result);

}  // namespace numsim::experiments
