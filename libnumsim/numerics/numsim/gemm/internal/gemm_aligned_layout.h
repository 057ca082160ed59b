// How gemm_aligned_simd.cc lays out a panel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "numsim/gemm/internal/gemm_simd.h"

namespace numsim {

// Words of fields, one field per value of a chunk and vector, in a panel.
struct AlignedWords {
  size_t per_word;  // fields in a word: 2 or 4
  size_t words;     // per vector and chunk
  size_t at;        // bytes from the start of the panel
};

// The arrays of a panel: values, then exponents, and for fused lanes lowest bits.
struct AlignedLayout {
  AlignedWords exponents, lowest_bits = {};
  size_t end;  // bytes

  AlignedLayout(const AlignedSums& sums, size_t width, size_t depth) {
    const size_t chunk = static_cast<size_t>(sums.chunk);
    const size_t chunks = (depth + chunk - 1) / chunk;
    const bool wide = AreOfFloat64(sums.lanes);
    const bool shorts = sums.lanes == AlignedLanes::kDouble;
    const bool tiles = sums.lanes == AlignedLanes::kFloatTiles;
    const size_t lane = wide ? sizeof(double) : sizeof(float);
    end = Aligned(depth * width * lane);
    const auto add = [&](size_t per_word, size_t fields) {
      const size_t words = per_word == 2 ? (fields + 1) / 2 : (fields + 3) / 4;
      const AlignedWords added{per_word, words, end};
      end = Aligned(end + chunks * added.words * width * sizeof(uint32_t));
      return added;
    };
    exponents = add(shorts || tiles ? 2 : 4, tiles ? kAmxPowers : chunk);
    if (sums.lanes != AlignedLanes::kInteger) lowest_bits = add(shorts ? 2 : 4, chunk);
  }

 private:
  static size_t Aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
};

// The exponent of zero: below that of every product, even if the other operand's is the largest.
constexpr int NoExponent(AlignedLanes lanes) {
  return lanes == AlignedLanes::kDouble ? -1024 : -128;
}

// A field of lowest bits holds the place of the lowest set bit of a value, counted from the unit of
// its operand, and the sign of the value in the field's highest bit. So the sum of two fields, an
// integer of `Field`, is negative if the product is, and tells the place of the product's lowest bit.
// Places of products are below kNoLowestBit, which stands for zero.
template <typename Field>
constexpr int kNoLowestBit = std::numeric_limits<Field>::max() / 2;

// The exponent fields of powers of the smallest exponents. That of their product is 8: the smallest
// multiple of 8 that is not 0.
constexpr int kPowerOffsetA = 72;
constexpr int kPowerOffsetB = 63;

}  // namespace numsim
