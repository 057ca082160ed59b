// The last part of a matched step: which weights of the critical group move (matched_step.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numsim/optim/matched_terms.h"

namespace numsim {

// Weights that change from the alpha below alpha* (at_low) to alpha* (at_high).
struct CriticalGroup {
  AlphaKey key = 0;      // of alpha*
  double sum_below = 0;  // S below alpha*, in quanta
  std::vector<uint64_t> index;
  std::vector<float> weights, update, at_low, at_high;
};

struct CriticalChoice {
  bool below_min_step = false;
  double sum = 0;  // S with the members that change, in quanta
};

// Writes the value of each member that changes to new_weights, at its index.
// Requires sum_below < T <= sum_below + what all members add, and at most 2^32 members.
CriticalChoice MoveMembers(const MatchedProblem& problem,
                           const MatchedTerms& terms,
                           const CriticalGroup& group,
                           std::span<float> new_weights);

}  // namespace numsim
