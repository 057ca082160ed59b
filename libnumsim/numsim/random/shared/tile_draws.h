// The random bits of streams.h for every eighth element of 64, on host and device. No array is
// indexed at run time, since a compiler for a device would keep such an array in memory rather than
// in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/random/streams.h"

namespace numsim {

// Returns words[i]. Requires i < 4.
NUMSIM_INLINE uint32_t WordOfBlock(const PhiloxCounter& words, uint32_t i) {
  const uint32_t low = (i & 1) != 0 ? words[1] : words[0];
  const uint32_t high = (i & 1) != 0 ? words[3] : words[2];
  return (i & 2) != 0 ? high : low;
}

// The random bits of elements first + lane + 8 k, k = 0 .. 7. Requires first % 64 == 0 and lane < 8.
// Two blocks of random words hold them.
class TileDraws {
 public:
  TileDraws() = default;
  NUMSIM_HOST_DEVICE TileDraws(RandomStream random, int bits, size_t first, unsigned lane)
      : bits_(bits), fields_(32u / static_cast<uint32_t>(RandomFieldBits(bits))) {
    const uint64_t chunk = first / 64;
    part_ = static_cast<uint32_t>(chunk % fields_);
    const uint64_t block = chunk / fields_ * kRandomLanes + lane;
    even_ = RandomBlock(random, block);
    odd_ = RandomBlock(random, block + 8);
  }

  // Returns R of element k. For its place j in a tile of streams.h, j / 16 = 4 part + k / 2.
  NUMSIM_HOST_DEVICE uint32_t At(unsigned k) const {
    const uint32_t sixteenth = part_ * 4 + k / 2;
    const uint32_t word =
        WordOfBlock(k % 2 == 0 ? even_ : odd_, fields_ == 1 ? sixteenth : sixteenth / fields_);
    const uint32_t field_bits = 32 / fields_;
    const uint32_t aligned = word << (32 - field_bits * (sixteenth % fields_ + 1));
    return aligned >> (32 - bits_);
  }

 private:
  int bits_ = 32;
  uint32_t fields_ = 1, part_ = 0;
  PhiloxCounter even_ = {}, odd_ = {};
};

}  // namespace numsim
