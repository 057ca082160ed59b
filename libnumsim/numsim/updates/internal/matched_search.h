// Finding alpha* and its tie set (matched_step.h), in two ways.
#pragma once

#include <optional>

#include "numsim/updates/internal/matched_terms.h"
#include "numsim/updates/internal/tie_set.h"

namespace numsim {

struct SearchResult {
  // Empty where no alpha reaches the target. Members in ascending order of index.
  std::optional<TieSet> group;
  int passes = 0;  // over all weights
};

SearchResult SearchByBisection(const MatchedProblem& problem, const MatchedTerms& terms);
SearchResult SearchBySelection(const MatchedProblem& problem, const MatchedTerms& terms);

// The weights whose value differs between two factors, and S at both.
struct Crossing {
  TieSet members;  // key and sum_below are left open
  double sum_low = 0, sum_high = 0;
};
Crossing FindCrossing(const MatchedProblem& problem,
                      const MatchedTerms& terms,
                      AlphaKey low,
                      AlphaKey high);

}  // namespace numsim
