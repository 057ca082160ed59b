// Philox for CUDA kernels. The keys of all rounds are computed once, on the host, and passed as
// kernel parameters, which an instruction reads without a register. This saves the two key
// additions of every round.
#pragma once

#include <cstdint>

#include "numsim/random/streams.h"

namespace numsim::cuda {

struct PhiloxStream {
  uint32_t keys[kPhiloxRounds][2];
  uint32_t stream[2];
};

inline PhiloxStream MakePhiloxStream(RandomStream s) {
  PhiloxStream made;
  PhiloxKey key = {static_cast<uint32_t>(s.seed), static_cast<uint32_t>(s.seed >> 32)};
  for (auto& round : made.keys) {
    round[0] = key[0];
    round[1] = key[1];
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  made.stream[0] = static_cast<uint32_t>(s.stream);
  made.stream[1] = static_cast<uint32_t>(s.stream >> 32);
  return made;
}

__device__ __forceinline__ uint64_t MultiplyWide(uint32_t a, uint32_t b) {
  uint64_t product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
}

// Returns RandomBlock(stream, block) for the stream that `s` was made from. For speed, `s` should
// be a kernel parameter.
__device__ __forceinline__ PhiloxCounter RandomBlock(const PhiloxStream& s, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = s.stream[0], c3 = s.stream[1];
#pragma unroll
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = MultiplyWide(c0, kPhiloxMultiplier0);
    const uint64_t product1 = MultiplyWide(c2, kPhiloxMultiplier1);
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ s.keys[round][0];
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ s.keys[round][1];
    c3 = static_cast<uint32_t>(product0);
  }
  return {c0, c1, c2, c3};
}

// Returns RandomBits of element `index` at the top of a word, with zeros below.
__device__ __forceinline__ uint32_t TopAlignedDraw(const PhiloxStream& s,
                                                   uint64_t index,
                                                   int bits) {
  const int field_bits = RandomFieldBits(bits);
  const unsigned fields = 32u / static_cast<unsigned>(field_bits);
  const uint64_t tile = index / (64 * fields);
  const unsigned j = static_cast<unsigned>(index % (64 * fields));
  const PhiloxCounter block = RandomBlock(s, tile * kRandomLanes + j % 16);
  const unsigned w = j / (16 * fields);  // selected below: indexing would need an array in memory
  const uint32_t low = w == 0 ? block[0] : block[1];
  const uint32_t high = w == 2 ? block[2] : block[3];
  const int field = static_cast<int>(j / 16 % fields);
  const uint32_t aligned = (w < 2 ? low : high) << (32 - field_bits * (field + 1));
  return aligned >> (32 - bits) << (32 - bits);
}

}  // namespace numsim::cuda
