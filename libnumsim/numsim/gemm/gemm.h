// Products of matrices of codes or floats under a named accumulation mode.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// The scales of one operand: element (row, k) of the operand is worth
//   value(row, k) * data[row / row_group * row_stride + k / segment * segment_stride]
// with k / segment read as 0 when segment == 0. No data: all scales are 1.
struct GemmScales {
  std::span<const float> data = {};
  size_t row_group = 1;   // >= 1
  size_t row_stride = 0;  // 0: one scale for all rows
  size_t segment = 0;     // elements along the inner dimension that share a scale; 0: all
  size_t segment_stride = 0;

  float At(size_t row, size_t segment_index) const {
    if (data.empty()) return 1.0f;
    const size_t along = segment == 0 ? 0 : segment_index * segment_stride;
    return data[row / row_group * row_stride + along];
  }
};

// A factor of a product: `rows` vectors of length `inner`, the inner dimension. Row-major, as
// rows x inner, or as inner x rows when `transposed`. One of values, codes8, codes16 is given:
// float32 values that lie on the grid of `format`, or its codes (format.StorageBytes() each).
struct GemmOperand {
  // ("= {}" lets a designated initialiser leave members out without a warning.)
  FormatSpec format = {};
  std::span<const float> values = {};
  std::span<const uint8_t> codes8 = {};
  std::span<const uint16_t> codes16 = {};
  size_t rows = 0;
  size_t inner = 0;
  bool transposed = false;
  GemmScales scales = {};
};

// out(i, j) = sum over k of a(i, k) b(j, k): A B^T, a.rows x b.rows, row-major.
//
// The inner dimension is cut into segments where an operand has scales along it (both: of the same
// length), else it is one segment. Within a segment S = the sum of value products under `rule`
// (arith/accumulation_mode.h, the scalar definition). S is scaled in the store:
//   t = fl32(fl64(S * (sa * sb)))        sa * sb is exact in float64
// for rule exact, S is the exact sum rounded to odd to float64, so without scales t is rounded
// once. More than one segment: out = the sum of the t in float32, in order, from the first. NaN
// results are NanResult(rule). inner == 0 gives +0.
//
// The bits do not depend on backend, thread count or `transposed`, except under rule library, which
// also multiplies the scales into the operands first.
// int8 operands (the two's complement grid, -128 included) under rule exact are added as integers,
// up to inner == 2^38.
// Throws Error under the backend cuda alone, when the device refuses (its memory, for one).
// Requires equal inner, spans of rows * inner elements, out.size() == a.rows * b.rows.
void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& rule,
          std::span<float> out);

// Gemm for every rule but library. A program that calls nothing else needs no linear algebra
// library.
void GemmByRule(const GemmOperand& a,
                const GemmOperand& b,
                const AccumulationMode& rule,
                std::span<float> out);

// The same sums as integers, no scales. Returns false if a sum does not fit into int32: that
// element is then the nearest int32. Requires operands of int8 codes.
[[nodiscard]] bool GemmInt32(const GemmOperand& a, const GemmOperand& b, std::span<int32_t> out);

// What computes rule library here: "oneDNN 2.6.3" or "Eigen 3.4.0".
const char* GemmLibrary();

}  // namespace numsim
