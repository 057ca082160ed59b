// The last part of a matched step: which weights of the tie set move (matched_step.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numsim/base/host_device.h"
#include "numsim/updates/internal/matched_terms.h"

namespace numsim {

// Weights that change from the alpha below alpha* (at_low) to alpha* (at_high).
struct TieSet {
  AlphaKey key = 0;      // of alpha*
  double sum_below = 0;  // S below alpha*, in quanta
  std::vector<uint64_t> index;
  std::vector<float> weights, update, at_low, at_high;
};

struct TieChoice {
  bool below_min_step = false;
  double sum = 0;  // S with the members that change, in quanta
};

// Which members change: those with (word, index) before (last_word, last_index), and the one there
// if it does.
struct TieDecision {
  TieChoice choice;
  uint32_t last_word = 0;
  bool last_moves = false;
  uint64_t last_index = 0;

  NUMSIM_HOST_DEVICE bool Moves(uint32_t word, uint64_t index) const {
    if (word != last_word) return word < last_word;
    return index < last_index || (index == last_index && last_moves);
  }
};

// `words` are the members' own, RandomWord(problem.random, problem.first_index + index). The same
// requirements as MoveMembers.
TieDecision DecideMembers(const MatchedProblem& problem,
                          const MatchedTerms& terms,
                          const TieSet& group,
                          const std::vector<uint32_t>& words);

// Members whose words share their upper bits stand in one bucket.
inline constexpr int kTieBucketBits = 10;
NUMSIM_HOST_DEVICE inline uint32_t TieBucket(uint32_t word) {
  return word >> (32 - kTieBucketBits);
}

// The bucket of the last member that may change, given what the members of each bucket add to S;
// `sum` starts as S without any and becomes S with those of the buckets before it.
uint32_t LastTieBucket(const MatchedTerms& terms, const std::vector<double>& added, double& sum);

// Writes the value of each member that changes to new_weights, at its index.
// Requires sum_below < T <= sum_below + what all members add, and at most 2^32 members.
TieChoice MoveMembers(const MatchedProblem& problem,
                      const MatchedTerms& terms,
                      const TieSet& group,
                      std::span<float> new_weights);

}  // namespace numsim
