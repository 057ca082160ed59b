// An estimate of alpha* from a sample of the weights.
#pragma once

#include "numsim/base/host_device.h"
#include "numsim/updates/internal/matched_terms.h"

namespace numsim {

// A bracket of factors, low < high. It need not contain alpha*.
struct AlphaBracket {
  AlphaKey low = 0, high = kGreatestAlpha;
};

// The weights that are sampled, and the sum that their terms should have.
struct MatchedPopulation {
  std::span<const float> weights, update;
  double share = 0;  // desired sum of their terms / sum of u^2
};

// The sample of n weights consists of SampleRuns(n) runs of kSampleRun neighbours (the last run may
// be cut short by the end). Run r is in the r-th of as many equal parts, at a place that its random
// word gives.
inline constexpr size_t kSampleRun = 16;
inline constexpr double kStandardErrors = 4;  // of an estimate, on either side
size_t SampleRuns(size_t n);                  // >= 1
NUMSIM_HOST_DEVICE inline size_t SampleRunBegin(uint32_t word, size_t run, size_t part) {
  const size_t room = part > kSampleRun ? part - kSampleRun + 1 : 1;
  return run * part + word % room;
}

// Returns a bracket within `within` that contains alpha* unless the sample deviates by more than
// kStandardErrors standard errors. With c_i(alpha) = term_i(alpha) - share u_i^2, the standard
// error of sum c_i over the sample is sqrt(sum c_i^2). The ends are the last factor at which sum
// c_i is that many standard errors below 0, and the first at which it is that many above 0. The
// sample has n^(3/4) / 8 weights in runs of 16 neighbours, one run at a random place of each of as
// many equal parts.
AlphaBracket GuessBracket(const MatchedProblem& problem,
                          const MatchedTerms& terms,
                          const MatchedPopulation& population,
                          AlphaBracket within);

}  // namespace numsim
