// Random bits as a pure function of (seed, stream, element index).
//
// Philox block b of (seed, stream) is Philox4x32(counter, key) with
//   key     = {low word of seed, high word of seed}
//   counter = {low word of b, high word of b, low word of stream, high word of stream}
//
// N random bits R are taken from a field of a 32-bit word: a field of 8 bits if N <= 8, of 16 bits
// if N <= 16, otherwise the whole word. With D = 4, 2 or 1 fields per word, element i is in tile
// i / (64 D). With j = i mod (64 D), its field is
//   word  w = j / (16 D)           of the block's four words
//   field d = (j / 16) mod D       counted from the low end of the word
//   lane  l = j mod 16             block b = 16 (i / (64 D)) + l
// and R is the top N bits of the field. So 16 neighbouring elements use the same word of 16
// neighbouring blocks, which a vector unit of any width up to 16 lanes computes without a shuffle.
#pragma once

#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/random/philox.h"

namespace numsim {

// The number of lanes of the layout that is described above.
inline constexpr int kRandomLanes = 16;

// A stream of random bits: streams of one seed are independent.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

// Returns the width of the field that `bits` (1..32) random bits are taken from: 8, 16 or 32.
NUMSIM_HOST_DEVICE constexpr int RandomFieldBits(int bits) {
  return bits <= 8 ? 8 : bits <= 16 ? 16 : 32;
}

// Returns the number of elements in a tile, the unit in which random words are computed. It is a
// multiple of 64.
NUMSIM_HOST_DEVICE constexpr uint64_t RandomTileElements(int bits) {
  return uint64_t{64} * (32 / RandomFieldBits(bits));
}

// Returns the four words of a block of the stream.
NUMSIM_HOST_DEVICE constexpr PhiloxCounter RandomBlock(RandomStream s, uint64_t block) {
  return Philox4x32({static_cast<uint32_t>(block),
                     static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(s.stream),
                     static_cast<uint32_t>(s.stream >> 32)},
                    {static_cast<uint32_t>(s.seed), static_cast<uint32_t>(s.seed >> 32)});
}

// Returns R for element `index`: `bits` (1..32) random bits in the low bits of the result.
NUMSIM_HOST_DEVICE constexpr uint32_t RandomBits(RandomStream s, uint64_t index, int bits) {
  const int field_bits = RandomFieldBits(bits);
  const uint64_t fields = 32 / field_bits;
  const uint64_t tile = index / (64 * fields);
  const uint64_t j = index % (64 * fields);
  const uint32_t word = RandomBlock(s, tile * kRandomLanes + j % 16)[j / (16 * fields)];
  const int field = static_cast<int>(j / 16 % fields);
  const uint32_t aligned = word << (32 - field_bits * (field + 1));  // field at the top
  return aligned >> (32 - bits);
}

// Returns a whole 32-bit word for element `index`.
NUMSIM_HOST_DEVICE constexpr uint32_t RandomWord(RandomStream s, uint64_t index) {
  return RandomBits(s, index, 32);
}

// The uses of the user's seed. Each use has a derived seed of its own, so that no two of them share
// a stream, however they number their streams.
enum class RandomPurpose : uint32_t {
  kWeights = 1,  // initial values; stream: number of the parameter
  kLinear,       // rounding of operands; stream: step and number of the layer
  kStorage,      // rounding of tensors between operations
  kMoments,      // rounding of moments; stream: step and number of the tensor
  kUpdate,       // rounding of weights; stream: step and number of the tensor
  kShuffle,      // order of the data; stream: epoch
  kText,         // generated text
  kShapes,       // generated images of shapes
  kFeatures,     // features for a student model
  kTeacher,      // weights of a teacher model
  kTokens,       // tokens with Zipf frequencies
  kPatches,      // patches that are dropped; stream: step
  kWhatIf,       // rounding under recipes of what-if telemetry; stream: pass, layer, tensor
  kNudge,        // the weight that is changed by one ulp; stream: number of the draw
};

// Returns the seed for one purpose: the first two words of Philox4x32 with counter
// {purpose, 0, 0, 0xD00D} and `seed` as the key. Two different pairs of seed and purpose give the
// same result only by chance (2^-64).
constexpr uint64_t DeriveSeed(uint64_t seed, RandomPurpose purpose) {
  const PhiloxCounter words =
      Philox4x32({static_cast<uint32_t>(purpose), 0, 0, 0xD00D},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{words[1]} << 32 | words[0];
}

}  // namespace numsim
