// Packs GEMM operands into panels, the layout that the tile kernels of gemm_simd.h read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numsim/gemm/gemm.h"
#include "numsim/gemm/inner_range.h"

namespace numsim {

// Returns n stored elements from `at` on as floats: in place if they are stored as floats, else
// decoded into `buffer`.
const float* StoredRun(const GemmOperand& x, size_t at, size_t n, float* buffer);

// Vectors that are worth packing in one call, so that codes are decoded in runs of this many.
inline constexpr size_t kPackElements = 256;

// Packs `count` strips of `width` vectors each, from strip `first` on, into panels. Panel s starts
// at panels + s * panel_stride. For each k of the range it has `width` floats: the values of
// vectors (first + s) * width and following, 0 beyond the last vector. Requires
// width <= kMaxTileCols (gemm_simd.h).
void PackFloatPanels(const GemmOperand& operand,
                     size_t width,
                     size_t first,
                     size_t count,
                     InnerRange range,
                     float* panels,
                     size_t panel_stride);

// Packs strips of int8 codes for VNNI: for each group of 4 consecutive k, 4 bytes per vector, 0
// beyond the last vector and beyond the range. Every byte is then XORed with `flip`. Requires
// range.Size() <= 4096, count * width <= 4096, width <= kMaxTileCols, and panels and panel_stride
// aligned to 4 bytes.
void PackInt8Panels(const GemmOperand& operand,
                    size_t width,
                    size_t first,
                    size_t count,
                    InnerRange range,
                    uint8_t flip,
                    uint8_t* panels,
                    size_t panel_stride);

// Packs strips of int8 codes for AMX: for each step of kAmxDepth consecutive k, kAmxDepth bytes per
// vector, 0 beyond the last vector and beyond the range. Requires what PackInt8Panels does and
// width % 4 == 0.
void PackInt8Steps(const GemmOperand& operand,
                   size_t width,
                   size_t first,
                   size_t count,
                   InnerRange range,
                   uint8_t* panels,
                   size_t panel_stride);

// Facts about an operand's values, from which the kernel is chosen.
struct OperandRange {
  bool zero = true;  // no finite value other than 0
  // floor(log2 |x|) of the smallest and largest finite x != 0; MinExponent() for subnormals.
  int low_exponent = 0;
  int high_exponent = 0;
  int unit = 0;                   // finite values are multiples of 2^unit
  std::vector<size_t> nonfinite;  // vectors that hold NaN or infinity, ascending
};
OperandRange RangeOf(const GemmOperand& operand);

// Throws Error unless the operands and the number of results meet the requirements of Gemm on
// sizes.
void CheckProduct(const GemmOperand& a, const GemmOperand& b, size_t results);

// Returns the number of inner elements per segment, given by the operand that has scales along the
// inner dimension; without such scales, one segment holds them all. Throws Error if both
// operands have such scales, of different segments.
size_t SegmentLength(const GemmOperand& a, const GemmOperand& b);

// Returns value(row, k), without its scale.
float OperandValue(const GemmOperand& operand, size_t row, size_t k);

}  // namespace numsim
