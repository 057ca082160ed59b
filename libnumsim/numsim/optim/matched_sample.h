// A guess at alpha* from some of the weights.
#pragma once

#include "numsim/optim/matched_terms.h"

namespace numsim {

// low < high. Nothing is certain about them.
struct AlphaBracket {
  AlphaKey low = 0, high = kGreatestAlpha;
};

// A share of the weights of a problem, and what they should add up to.
struct MatchedSample {
  std::span<const float> weights, update;
  double share = 0;  // wanted sum over all weights that the sample is of / their sum of u^2
};

// Two factors within `within` between which alpha* lies unless chance is four standard errors off:
// with c_i(alpha) = term_i(alpha) - share u_i^2 and the standard error sqrt(sum c_i^2), the last
// one at which sum c_i is that far below 0, and the first at which it is that far above.
AlphaBracket GuessBracket(const MatchedProblem& problem,
                          const MatchedTerms& terms,
                          const MatchedSample& sample,
                          AlphaBracket within);

// Runs of 16 neighbouring elements at random places, one in each of `size` / 16 equal parts, from
// both spans into both vectors. Requires size <= weights.size().
void TakeSample(const MatchedProblem& problem,
                std::span<const float> weights,
                std::span<const float> update,
                size_t size,
                std::vector<float>& sampled_weights,
                std::vector<float>& sampled_update);

}  // namespace numsim
