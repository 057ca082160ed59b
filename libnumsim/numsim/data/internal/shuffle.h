// The order in which an epoch visits its examples.
#pragma once

#include <cstdint>

#include "numsim/random/streams.h"

namespace numsim {

// A permutation of 0 .. n-1 that (seed, epoch) decides. Any place of it is found by itself, without
// a table: a Feistel network over pairs of digits of base ceil(sqrt n), whose rounds add a Philox
// word, repeated until the result is below n [CycleWalking]. Seeds are derived by
// RandomPurpose::kShuffle, so a caller passes its seed as it is.
class EpochShuffle {
 public:
  // Requires 1 <= n <= 2^62.
  EpochShuffle(uint64_t seed, uint64_t epoch, uint64_t n);

  uint64_t size() const { return n_; }
  // The example at `place`. Requires place < n. Costs 8 Philox blocks, seldom a few times that.
  uint64_t operator()(uint64_t place) const;

 private:
  uint64_t seed_, epoch_, n_;
  uint64_t base_;  // base * base >= n
};

// A number below n that (seed, epoch, use) decides, independent of the permutations. Any of them is
// as likely as another, to within n / 2^64. Requires n >= 1.
uint64_t EpochDraw(uint64_t seed, uint64_t epoch, uint32_t use, uint64_t n);

}  // namespace numsim
