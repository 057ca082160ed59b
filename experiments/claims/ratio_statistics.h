// Tests of ratios of rates: how often something happens in the runs of one arm over how often in
// those of another, such as loss spikes per run.
//
// Counts of runs scatter more than a Poisson variable, and those of one seed are correlated. With few
// events neither of the usual tests holds its level, so a ratio is tested by both, and the larger p
// counts:
//
// - exactly, given the sum of all counts: without more scatter than Poisson's the events of an arm
//   are then binomial (J. Przyborowski and H. Wilenski, Biometrika 31, 1940);
// - by Student's t of x - r y over seeds, where x and y are the counts of a seed and r the ratio in
//   question (E. C. Fieller, Journal of the Royal Statistical Society B 16, 1954). It knows pairs and
//   scatter. It is also asked about y alone, so that a small ratio needs events of the second arm.
//
// Chosen by a simulation of the two-sided level of 5 %: 3 to 40 seeds, means of 0.5, 2 and 8
// events, ratios of 1, 0.5 and 0.2, seeds whose rates are gamma variables of relative variance 0, 0.3
// and 1.5, common to both arms or not, 4000 experiments each. Wrong are
//
//   the exact test alone                      11 % on average, up to 29 % on one side
//   Student's t of x - r y alone              4.2 %, up to 17 %
//   log ratio of totals, jackknife, t         9.9 %, up to 33 %
//   the same, of at least Poisson's variance  2.4 %, up to 5.7 %
//   both tests of this file                   1.9 %, up to 3.9 %
//
// With many seeds the last is near the level (3.8 % for 40), and it takes little of the power of
// Student's t alone (46 of 53 % for 10 seeds of 2 events and a ratio of 0.4).
#pragma once

#include <vector>

#include "experiments/claims/verdict.h"

namespace numsim::experiments {

// The counts of two arms at the seeds that both have.
struct PairedCounts {
  std::vector<double> first, second;
};

// Returns the p of the hypothesis that the ratio of the first rate to the second is at least
// `ratio`, a positive number or infinity; 1 for fewer than two seeds. It does not rise with `ratio`.
double RatioBelow(const PairedCounts& counts, double ratio);
// Returns the p of the hypothesis that it is at most `ratio`, at least 0.
double RatioAbove(const PairedCounts& counts, double ratio);

// Sets contrasts, confidence, p_supported, p_contradicted and seeds_to_decide of `result` for a
// claim on ratios; one element of `counts` per contrast. `alpha` is the level of one look,
// `planned_alpha` that of seeds_to_decide; 0 leaves that out. Throws Error unless counts are whole
// numbers from 0 on.
void TestRatios(const ClaimTest& test,
                const std::vector<PairedCounts>& counts,
                double alpha,
                double planned_alpha,
                ClaimResult& result);

}  // namespace numsim::experiments
