// The last part of a matched step (matched_step.h): deciding which weights of the tie set move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numsim/base/host_device.h"
#include "numsim/base/shared/uninitialized_vector.h"
#include "numsim/updates/internal/matched_terms.h"

namespace numsim {

// The weights that change between the alpha below alpha* (value at_low) and alpha* (at_high). There may
// be others among them, with the same value at both: they add nothing, and never move.
struct TieSet {
  AlphaKey key = 0;      // alpha*
  double sum_below = 0;  // S below alpha*, in quanta
  UninitializedVector<uint64_t> index;
  UninitializedVector<float> weights, update, at_low, at_high;

  size_t size() const { return index.size(); }
  // New members are not initialised.
  void Resize(size_t members) {
    index.resize(members);
    for (auto* const values : {&weights, &update, &at_low, &at_high}) values->resize(members);
  }
  // Returns the places of the members from one on.
  BracketValuesOut From(size_t member) {
    return {weights.data() + member,
            update.data() + member,
            at_low.data() + member,
            at_high.data() + member,
            index.data() + member};
  }
};

struct TieChoice {
  bool below_min_step = false;
  double sum = 0;  // S after the members that move, in quanta
};

// The decision about which members move: those with (word, index) before (last_word, last_index),
// and also the last one if last_moves.
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

// Decides which members of the tie set `group` move. `words` are the members' random words,
// RandomWord(problem.random, problem.first_index + index). Has the requirements of MoveMembers.
TieDecision DecideMembers(const MatchedProblem& problem,
                          const MatchedTerms& terms,
                          const TieSet& group,
                          std::span<const uint32_t> words);

// Members whose random words have the same upper kTieBucketBits bits are in the same bucket.
inline constexpr int kTieBucketBits = 10;
NUMSIM_HOST_DEVICE inline uint32_t TieBucket(uint32_t word) {
  return word >> (32 - kTieBucketBits);
}

// Returns the bucket of the last member that may move. added[b] is what the members of bucket b add
// to S. `sum` is S without any member on entry, and S with the members of all buckets before the
// returned one on return.
uint32_t LastTieBucket(const MatchedTerms& terms, const std::vector<double>& added, double& sum);

// Writes at_high of each member that moves, and at_low of the others, to new_weights, at the member's
// index. Requires sum_below < T <= sum_below + what all members add to S, and at most 2^32 members.
TieChoice MoveMembers(const MatchedProblem& problem,
                      const MatchedTerms& terms,
                      const TieSet& group,
                      std::span<float> new_weights);

}  // namespace numsim
