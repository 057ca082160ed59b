// Hadamard transforms of blocks of a matrix, which spread an outlier over its block before the matrix
// is quantised. If both operands of a GEMM are transformed along the inner dimension, the exact
// product stays the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "numsim/base/matrix_shape.h"
#include "numsim/random/streams.h"

namespace numsim {

// The numbers of elements of a block.
inline constexpr size_t kHadamardSizes[] = {16, 32, 64, 128};
// Returns true for the numbers of elements that a block may have.
constexpr bool IsHadamardSize(size_t size) {
  return size == 16 || size == 32 || size == 64 || size == 128;
}

// The signs by which the elements of every block are multiplied first. Bit i % 64 of words[i / 64]
// is 1 if element i changes its sign.
struct HadamardSigns {
  std::array<uint64_t, 2> words = {};

  // Returns true if element i changes its sign.
  constexpr bool Negates(size_t i) const { return (words[i / 64] >> (i % 64) & 1) != 0; }
  friend constexpr bool operator==(const HadamardSigns&, const HadamardSigns&) = default;
};

// Returns signs in which bit i is bit i % 16 of the mask. 0 changes no sign.
HadamardSigns RepeatedSigns(uint16_t mask);

// Returns signs in which bit i is RandomBits(stream, i, 1), for i from 0 to 127.
HadamardSigns DrawSigns(RandomStream stream);

// The direction of the blocks: consecutive elements of a row, or of a column.
enum class HadamardAxis : uint8_t { kRows, kColumns };

// Writes the transform of each block of n = `size` elements x_0 .. x_(n-1):
//   out_j = n^(-1/2) * sum over i of (-1)^(number of ones of i & j) * s_i * x_i
// with s_i = -1 where signs.Negates(i), otherwise 1. It is computed in float32, as follows:
//   1. x_i = s_i x_i.
//   2. For h = 1, 2, 4 .. n/2, for each i without the bit h:
//      x_i = fl32(x_i + x_(i+h)) and x_(i+h) = fl32(x_i - x_(i+h)), from the values before.
//   3. out_i = fl32(x_i * fl32(n^(-1/2))), which is exact for n = 16 and 64.
// A NaN of the result is 0x7FC00000. The bits depend neither on the backend nor on threads.
// `out` may be `in`. Requires a size of kHadamardSizes that divides the length of the rows, or of the
// columns, and spans of shape.Elements(); throws Error otherwise. Runs on the host.
void HadamardTransform(std::span<const float> in,
                       MatrixShape shape,
                       size_t size,
                       const HadamardSigns& signs,
                       HadamardAxis axis,
                       std::span<float> out);

}  // namespace numsim
