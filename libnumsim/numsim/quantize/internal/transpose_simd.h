// Transposes of matrices of codes. One thread, any size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

// out[c * out_stride + r] = in[r * in_stride + c] for r < rows, c < cols: strides in elements. in
// and out do not overlap. Fast for 64 rows and more of 8 bits, 32 of 16 bits.
void Transpose(
    const uint8_t* in, size_t in_stride, size_t rows, size_t cols, uint8_t* out, size_t out_stride);
void Transpose(const uint16_t* in,
               size_t in_stride,
               size_t rows,
               size_t cols,
               uint16_t* out,
               size_t out_stride);

}  // namespace numsim
