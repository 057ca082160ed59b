// Two algorithms that find alpha* and its tie set, both defined in matched_step.h.
#pragma once

#include <optional>

#include "numsim/updates/internal/matched_terms.h"
#include "numsim/updates/internal/tie_set.h"

namespace numsim {

struct SearchResult {
  // Empty if no alpha reaches the target. Members are in ascending order of index.
  std::optional<TieSet> group;
  int passes = 0;  // over all weights
};

// If a group is found, new_weights receives the values just below alpha* of all weights that are not
// members.
// Requires new_weights that overlap neither array of the problem.
SearchResult SearchByBisection(const MatchedProblem& problem,
                               const MatchedTerms& terms,
                               std::span<float> new_weights);
SearchResult SearchBySelection(const MatchedProblem& problem,
                               const MatchedTerms& terms,
                               std::span<float> new_weights);

// The weights whose values differ between two factors alpha, and S at both factors.
struct Crossing {
  TieSet members;  // key and sum_below are not set
  double sum_low = 0, sum_high = 0;
};
// Writes the values at `low` to new_weights.
Crossing FindCrossing(const MatchedProblem& problem,
                      const MatchedTerms& terms,
                      AlphaKey low,
                      AlphaKey high,
                      std::span<float> new_weights);

}  // namespace numsim
