// The random bits of streams.h for every eighth or sixteenth element of 64, on host and device. No
// array is indexed at run time, since a compiler for a device would keep such an array in memory
// rather than in registers.
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

// The place of the random bits of a chunk of 64 elements: one of the fields of the words of a tile
// of streams.h. Fields are counted by a power of two, so that nothing is divided at run time.
class ChunkField {
 public:
  ChunkField() = default;
  // Requires first % 64 == 0.
  NUMSIM_INLINE ChunkField(int bits, size_t first)
      : bits_(bits),
        log_fields_(bits <= 8    ? 2
                    : bits <= 16 ? 1
                                 : 0) {
    const uint64_t chunk = first / 64;
    part_ = static_cast<uint32_t>(chunk) & ((1u << log_fields_) - 1);
    block_ = (chunk >> log_fields_) * kRandomLanes;
  }

  // Returns the block of random words of the chunk's element 0.
  NUMSIM_INLINE uint64_t Block() const { return block_; }

  // Returns R of an element of the chunk from the block of its lane. `sixteenth` is its place in the
  // chunk / 16.
  NUMSIM_INLINE uint32_t Of(const PhiloxCounter& words, uint32_t sixteenth) const {
    const uint32_t in_tile = part_ * 4 + sixteenth;
    const uint32_t word = WordOfBlock(words, in_tile >> log_fields_);
    const uint32_t field = in_tile & ((1u << log_fields_) - 1);
    const uint32_t aligned = word << (32 - (field + 1) * (32u >> log_fields_));
    return aligned >> (32 - bits_);
  }

 private:
  int bits_ = 32;
  uint32_t log_fields_ = 0, part_ = 0;
  uint64_t block_ = 0;
};

// The random bits of elements first + lane + 8 k, k = 0 .. 7. Requires first % 64 == 0 and lane < 8.
// Two blocks of random words hold them.
class TileDraws {
 public:
  TileDraws() = default;
  NUMSIM_HOST_DEVICE TileDraws(RandomStream random, int bits, size_t first, unsigned lane)
      : field_(bits, first),
        even_(RandomBlock(random, field_.Block() + lane)),
        odd_(RandomBlock(random, field_.Block() + lane + 8)),
        empty_(false) {}

  // Becomes TileDraws(random, bits, first, lane). Computes no words that it has, which must be of the
  // same stream, bits and lane.
  NUMSIM_HOST_DEVICE void MoveTo(RandomStream random, int bits, size_t first, unsigned lane) {
    const ChunkField field(bits, first);
    const bool has_words = !empty_ && field.Block() == field_.Block();
    field_ = field;
    if (has_words) return;
    even_ = RandomBlock(random, field.Block() + lane);
    odd_ = RandomBlock(random, field.Block() + lane + 8);
    empty_ = false;
  }

  // Returns R of element k. Where the compiler does not know k, choosing one of two blocks would put
  // them into memory; choosing one of two words keeps them in registers.
  NUMSIM_HOST_DEVICE uint32_t At(unsigned k) const {
    const uint32_t of_even = field_.Of(even_, k / 2), of_odd = field_.Of(odd_, k / 2);
    return k % 2 == 0 ? of_even : of_odd;
  }

 private:
  ChunkField field_;
  PhiloxCounter even_ = {}, odd_ = {};
  bool empty_ = true;
};

// The random bits of elements first + lane + 16 k, k = 0 .. 3. Requires first % 64 == 0 and
// lane < 16. One block of random words holds them. kWholeWords: there are 32 bits.
template <bool kWholeWords>
class QuarterDraws {
 public:
  NUMSIM_HOST_DEVICE QuarterDraws(RandomStream random, int bits, size_t first, unsigned lane)
      : field_(bits, first), words_(RandomBlock(random, field_.Block() + lane)) {}

  // Returns R of element k.
  NUMSIM_HOST_DEVICE uint32_t At(unsigned k) const {
    if constexpr (kWholeWords) return words_[k];
    return field_.Of(words_, k);
  }

 private:
  ChunkField field_;
  PhiloxCounter words_;
};

}  // namespace numsim
