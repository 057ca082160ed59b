// A sequential reader of the random words of a stream.
#pragma once

#include <cstdint>

#include "numsim/random/streams.h"

namespace numsim {

class DrawStream {
 public:
  explicit DrawStream(RandomStream stream) : stream_(stream) {}

  uint32_t Word() {
    if (used_ == words_.size()) {
      words_ = RandomBlock(stream_, block_++);
      used_ = 0;
    }
    return words_[used_++];
  }

  // Returns a number below n, uniform to within a relative error of n / 2^32. Requires n >= 1.
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(uint64_t{Word()} * n >> 32); }

  // Returns a value in (0, 1).
  double Unit() { return (static_cast<double>(Word()) + 0.5) * 0x1p-32; }

 private:
  RandomStream stream_;
  uint64_t block_ = 0;
  PhiloxCounter words_{};
  size_t used_ = 4;
};

}  // namespace numsim
