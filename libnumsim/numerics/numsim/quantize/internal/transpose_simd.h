// Transposition of matrices of codes. One thread, any size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

// Writes out[c * out_stride + r] = in[r * in_stride + c] for r < rows, c < cols. Strides are in
// elements. `in` and `out` must not overlap. Fast from 64 rows of 8-bit codes or 32 rows of 16-bit
// codes on.
void Transpose(
    const uint8_t* in, size_t in_stride, size_t rows, size_t cols, uint8_t* out, size_t out_stride);
void Transpose(const uint16_t* in,
               size_t in_stride,
               size_t rows,
               size_t cols,
               uint16_t* out,
               size_t out_stride);

}  // namespace numsim
