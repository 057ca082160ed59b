// The order in which an epoch visits its examples.
#pragma once

#include <cstdint>

#include "numsim/random/streams.h"

namespace numsim {

// A permutation of 0 .. n-1 that depends on (seed, epoch) only. Any element can be computed without
// a table: a Feistel network acts on pairs of base-ceil(sqrt n) digits, its rounds add Philox bits,
// and it is applied again until the result is below n [CycleWalking]. The constructor derives its
// own seed with RandomPurpose::kShuffle, so callers pass their seed unchanged.
class EpochShuffle {
 public:
  // Requires 1 <= n <= 2^62.
  EpochShuffle(uint64_t seed, uint64_t epoch, uint64_t n);

  uint64_t size() const { return n_; }
  // Returns the example at `place`. Requires place < n. Costs 8 Philox blocks, rarely a few times
  // as many.
  uint64_t operator()(uint64_t place) const;

 private:
  uint64_t seed_, epoch_, n_;
  uint64_t base_;  // base * base >= n
};

// Returns a number below n that depends on (seed, epoch, use) only and is independent of the
// permutations. It is uniform to within a relative error of n / 2^64. Requires n >= 1.
uint64_t EpochDraw(uint64_t seed, uint64_t epoch, uint32_t use, uint64_t n);

}  // namespace numsim
