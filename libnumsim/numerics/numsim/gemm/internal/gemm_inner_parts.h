// Sums in parts on a device: the mode trunc:F,CHUNK,PROMOTE of 16-bit operands. Parts of PROMOTE products
// are multiplied as if each were the whole inner dimension, many at once, so that small results of long
// sums fill the device. Their sums, one after another in memory, are then added in order.
#pragma once

#include <algorithm>
#include <cstddef>

namespace numsim::cuda {

// Equal parts of the inner dimension: `count` of `length` products each, from product `first` on.
struct InnerParts {
  size_t first = 0;
  size_t length = 0;
  size_t count = 1;
};

// Memory for sums of parts, unless two of them need more.
inline constexpr size_t kPartBytes = size_t{256} << 20;
// cuBLASLt numbers the products of a batch in a dimension of the grid.
inline constexpr size_t kMostParts = 65535;

// Returns how many parts have their sums in memory at once. Requires more than one part.
inline size_t PartSlots(size_t inner, size_t length, size_t bytes_of_result) {
  const size_t parts = std::min(kMostParts, (inner + length - 1) / length);
  return std::min(parts, std::max<size_t>(2, kPartBytes / bytes_of_result));
}

// Covers the inner dimension in order with calls of
//   multiply(parts, slot)   writes the sums of parts.count parts to `slot` and those after it
//   add(slots, last)        adds the sums of slots 0 .. slots - 1 in order: to slot 0 or, if they are
//                           the last ones, to the result
// The last part may be shorter. Requires at least two slots.
template <class Multiply, class Add>
void CoverInParts(
    size_t inner, size_t length, size_t slots, const Multiply& multiply, const Add& add) {
  size_t used = 0;
  for (size_t first = 0; first < inner;) {
    if (used == slots) {
      add(used, false);
      used = 1;
    }
    const size_t left = inner - first;
    const InnerParts parts = {.first = first,
                              .length = std::min(left, length),
                              .count = std::clamp<size_t>(left / length, 1, slots - used)};
    multiply(parts, used);
    used += parts.count;
    first += parts.count * parts.length;
  }
  add(used, true);
}

}  // namespace numsim::cuda
