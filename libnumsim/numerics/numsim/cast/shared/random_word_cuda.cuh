// The random bits of random/streams.h in device code, without an array that is indexed at run time.
#pragma once

#include <cstdint>

#include "numsim/random/shared/tile_draws.h"

namespace numsim::cuda {

// Returns RandomWord(random, index).
__device__ inline uint32_t RandomWordAt(RandomStream random, uint64_t index) {
  const PhiloxCounter words = RandomBlock(random, index / 64 * kRandomLanes + index % 16);
  return WordOfBlock(words, static_cast<uint32_t>(index / 16 % 4));
}

// Returns RandomBits(random, index, bits).
__device__ inline uint32_t RandomBitsAt(RandomStream random, uint64_t index, int bits) {
  const auto field_bits = static_cast<uint32_t>(RandomFieldBits(bits));
  const uint32_t fields = 32 / field_bits;
  const uint64_t sixteenth = index / 16;
  const uint64_t tile = sixteenth / (4 * fields);
  const auto place = static_cast<uint32_t>(sixteenth % (4 * fields));
  const PhiloxCounter words = RandomBlock(random, tile * kRandomLanes + index % 16);
  const uint32_t word = WordOfBlock(words, place / fields);
  const uint32_t aligned = word << (32 - field_bits * (place % fields + 1));
  return aligned >> (32 - bits);
}

}  // namespace numsim::cuda
