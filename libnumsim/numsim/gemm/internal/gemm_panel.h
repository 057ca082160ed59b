// Operands of products laid out as the tiles of gemm_simd.h read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numsim/gemm/gemm.h"

namespace numsim {

// A range of the inner dimension.
struct InnerRange {
  size_t begin = 0;
  size_t end = 0;

  size_t Size() const { return end - begin; }
};

// Strips that are worth packing together: a call decodes runs of at least this many codes.
inline constexpr size_t kPackElements = 256;

// panel s of `count`, panels + s * panel_stride: for each k of the range `width` floats, the values
// of vectors (first + s) * width ...; 0 beyond the last vector. Requires width <= kMaxTileCols of
// gemm_simd.h.
void PackFloatPanels(const GemmOperand& operand,
                     size_t width,
                     size_t first,
                     size_t count,
                     InnerRange range,
                     float* panels,
                     size_t panel_stride);

// The same of int8 codes, in groups of 4 consecutive k: for each group and vector 4 bytes, 0 beyond
// the last vector and beyond the range. Every byte is XORed with `flip`. Requires a range and count
// * width of at most 4096, width <= kMaxTileCols, and panels and panel_stride aligned to 4 bytes.
void PackInt8Panels(const GemmOperand& operand,
                    size_t width,
                    size_t first,
                    size_t count,
                    InnerRange range,
                    uint8_t flip,
                    uint8_t* panels,
                    size_t panel_stride);

// What a kernel needs to know of the values before it starts.
struct OperandRange {
  bool zero = true;  // there is no finite value but 0
  // floor(log2 |x|) of the smallest and largest finite x != 0, subnormals as MinExponent().
  int low_exponent = 0;
  int high_exponent = 0;
  int unit = 0;                   // finite values are multiples of 2^unit
  std::vector<size_t> nonfinite;  // vectors that hold NaN or infinity, ascending
};
OperandRange RangeOf(const GemmOperand& operand);

// What Gemm requires of its operands, for `results` elements of the result.
void CheckProduct(const GemmOperand& a, const GemmOperand& b, size_t results);

// value(row, k) without its scale.
float OperandValue(const GemmOperand& operand, size_t row, size_t k);

}  // namespace numsim
