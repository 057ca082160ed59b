// The number of seeds that a claim needs, from the scatter of a pilot and not from its effects.
#pragma once

#include <string>
#include <vector>

#include "experiments/claims/claim.h"

namespace numsim::experiments {

// A claim is decided with probability 0.8 both if it is true and if it is false by its margin: if its
// contrasts lie one margin beyond the bound that they are tested against, on either side. For an
// equivalence these are the truths 0 and twice the margin. A difference with a margin of 0 is planned for
// the paper's effect. Several contrasts are bounded by Bonferroni's inequality.
struct SeedPlan {
  double contrast_sd = 0;  // of a contrast over seeds, the largest of the claim; NaN: unknown
  double residual_sd = 0;  // of a run: that of the contrast over the root of its squared weights
  int freedom = 0;         // of these, in the pilot
  int seeds = 0;           // 0: unknown, see note; kMostSeeds + 1: more than that
  std::string note = {};   // why seeds is unknown
};

// Returns the plan of a claim that a pilot of `pilot_seeds` seeds has judged, if it shares the level alpha
// with `primary` claims. The standard error falls as 1 / sqrt(seeds) and its freedom rises as seeds - 1.
SeedPlan PlanSeeds(const JudgedClaim& claim, int pilot_seeds, int primary, double alpha = 0.05);

}  // namespace numsim::experiments
