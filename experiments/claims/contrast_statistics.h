// Tests of contrasts of arms by Student's t.
#pragma once

#include <span>
#include <vector>

#include "experiments/claims/verdict.h"

namespace numsim::experiments {

// Sets contrasts, confidence, p_supported, p_contradicted and seeds_to_decide of `result` for a
// claim on contrasts, from outcomes and weights as EstimateContrast takes them: one row of weights
// per contrast. `alpha` is the level of one look, `planned_alpha` that of seeds_to_decide; 0 leaves
// that out.
void TestContrasts(const ClaimTest& test,
                   std::span<const double> outcomes,
                   int seeds,
                   const std::vector<std::vector<double>>& weights,
                   double alpha,
                   double planned_alpha,
                   ClaimResult& result);

// A contrast as it is planned for: were its value and its scatter the truth.
struct PlannedContrast {
  double value = 0;
  double sigma = 0;  // standard deviation of its values over seeds; NaN if unknown
};

// Returns ClaimResult::seeds_to_decide of a claim on contrasts.
int SeedsToDecide(const ClaimTest& test,
                  const std::vector<PlannedContrast>& contrasts,
                  double alpha);

}  // namespace numsim::experiments
