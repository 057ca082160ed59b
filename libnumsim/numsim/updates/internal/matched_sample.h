// A guess at alpha* from some of the weights.
#pragma once

#include "numsim/base/host_device.h"
#include "numsim/updates/internal/matched_terms.h"

namespace numsim {

// low < high. Nothing is certain about them.
struct AlphaBracket {
  AlphaKey low = 0, high = kGreatestAlpha;
};

// Weights, and what they should add up to.
struct MatchedPopulation {
  std::span<const float> weights, update;
  double share = 0;  // wanted sum over them / sum of u^2
};

// The sample of n weights: SampleRuns(n) runs of kSampleRun neighbours (the last may be cut short
// by the end), run r in the r-th of as many equal parts, where its word says.
inline constexpr size_t kSampleRun = 16;
inline constexpr double kStandardErrors = 4;  // of a guess, on either side
size_t SampleRuns(size_t n);                  // >= 1
NUMSIM_HOST_DEVICE inline size_t SampleRunBegin(uint32_t word, size_t run, size_t part) {
  const size_t room = part > kSampleRun ? part - kSampleRun + 1 : 1;
  return run * part + word % room;
}

// Two factors within `within` between which alpha* lies unless chance is four standard errors off.
// Of a sample of the population, with c_i(alpha) = term_i(alpha) - share u_i^2 and the standard
// error sqrt(sum c_i^2): the last factor at which sum c_i is that far below 0, and the first at
// which it is that far above. The sample are n^(3/4) / 8 weights in runs of 16 neighbours, one at a
// random place of each of as many equal parts.
AlphaBracket GuessBracket(const MatchedProblem& problem,
                          const MatchedTerms& terms,
                          const MatchedPopulation& population,
                          AlphaBracket within);

}  // namespace numsim
