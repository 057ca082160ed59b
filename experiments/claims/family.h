// Corrections for several claims of a run and for several looks at it.
//
// The primary claims of a run share one level by Holm's method (S. Holm, Scandinavian Journal of
// Statistics 6, 1979), so that the chance that any of their verdicts is wrong is at most alpha.
// Holm's bound is about rejected hypotheses, for any correlation of the claims. That it also covers
// the direction of verdicts is proved for independent two-sided tests (J. P. Shaffer, Annals of
// Statistics 8, 1980) and simulated in tests/stats for claims that share arms. All other claims are
// exploratory and judged alone.
//
// A run that adds seeds until it is decided is judged several times, and each look is another
// chance of a wrong verdict. The looks are fixed beforehand and share alpha evenly (Bonferroni), so
// the bound holds for the verdicts of the look at which the run stops, however that is chosen.
#pragma once

#include <span>
#include <vector>

#include "experiments/claims/verdict.h"

namespace numsim::experiments {

// Returns p values adjusted by Holm's method, in the order given: a hypothesis is rejected at level
// alpha for the whole family if its adjusted p is at most alpha. With the k p values sorted, number
// i is multiplied by k - i + 1, raised to that of its predecessor, and capped at 1.
std::vector<double> HolmAdjusted(std::span<const double> p);

// Judges the primary claims of a run together. Sets p of each tested claim to its adjusted value, and
// the verdict and the reason accordingly. Claims that are not tested or decided by exact arithmetic
// are left alone and do not count; `left_out` more count with p = 1. Throws Error unless all tested
// claims have the same alpha.
void JudgeTogether(std::span<ClaimResult> primary, size_t left_out = 0);

// The numbers of seeds, ascending, at which a run is judged. TestLevel::looks is their number.
struct Looks {
  std::vector<int> seeds;
};

// Returns the looks of a run that starts with `first` seeds and may go up to `most`: at `first`, at
// `most`, and between them at equal ratios, about 2 apart and more if that would make more than
// four looks. {3, 20} gives 3, 6, 11, 20. Throws Error unless 2 <= first <= most.
Looks DefaultLooks(int first, int most);

}  // namespace numsim::experiments
