// GEMM of matrices of codes or floats under a named accumulation mode.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/backend/matrix.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// The scales of one operand. Element (row, k) of the operand stands for
//   value(row, k) * data[row / row_group * row_stride + k / segment * segment_stride]
// where k / segment is read as 0 if segment == 0. If `data` is empty, all scales are 1.
struct GemmScales {
  std::span<const float> data = {};
  size_t row_group = 1;   // >= 1
  size_t row_stride = 0;  // 0: one scale for all rows
  size_t segment = 0;     // elements per scale along the inner dimension; 0: all share one
  size_t segment_stride = 0;

  // Returns the scale of a row in a segment.
  float At(size_t row, size_t segment_index) const {
    if (data.empty()) return 1.0f;
    const size_t along = segment == 0 ? 0 : segment_index * segment_stride;
    return data[row / row_group * row_stride + along];
  }
};

// An operand of a GEMM: `rows` vectors of length `inner`, the inner dimension. Stored row-major as
// rows x inner, or as inner x rows if `transposed`. Exactly one of values, codes8 and codes16 is
// set: float32 values on the grid of `format`, or codes of it (format.StorageBytes() each). These
// and the scales are in the memory of `place`; on a device, a span is an address and a size.
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
  Place place = {};
};

// Computes out(i, j) = sum over k of a(i, k) b(j, k), that is A B^T: a.rows x b.rows, row-major.
//
// If an operand has scales along the inner dimension, they cut it into segments; otherwise there
// is one segment. Within a segment, S is the sum of the products of values under accumulation mode
// `mode` (scalar definition: arith/accumulation_mode.h). S is scaled when it is stored:
//   t = fl32(fl64(S * (sa * sb)))        sa * sb is exact in float64
// Under mode exact, S is the exact sum rounded to odd to float64, so without scales t is rounded
// once. With several segments, out is the float32 sum of their t, in order, from the first.
//
// Requires operands on the host, equal inner, equal segment lengths if both operands have segments,
// spans of rows * inner elements, scales for every row and segment, and out.size() == a.rows * b.rows.
// Throws Error otherwise, and under backend cuda if a device call fails, e.g. for lack of memory. NaN
// results are NanResult(mode). inner == 0 gives +0. The bits do not depend on backend, thread count or
// `transposed`, except under mode library. That multiplies the scales into the operands first; or,
// where it multiplies bf16 (codes of it, and formats within it where AMX makes that faster) without
// scales along the inner dimension, it scales the result. Under mode exact, int8 operands (the two's
// complement grid, including -128) are added as integers, up to inner == 2^38.
void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          std::span<float> out);

// Does the same for operands and a contiguous result at one place. A bf16 result, on a device, is t
// rounded to bf16 (nearest even). On the host, all modes are served. On a device:
//   fp32, fp64, fp32-chunked:N    operands of any format, any scales
//   exact                         int8
//   library, tensor core modes    codes, as MultipliesOnDevice (gemm_device.h) says, with one scale
//                                 per operand or per row
//   exact (int8), hopper-fp8*     on Hopper also segments of a multiple of 128 elements (of 128
//                                 alone under hopper-fp8)
// Throws Error for another one, for operands of another place, and for more rows of `a` than a
// launch takes (4 million under fp64, fp32-chunked and exact, 8 million under fp32). The bits of a
// device are those of the host, except under mode library. No call waits for the device.
void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          MatrixSpan<float> out);

// Writes the exact sums of Gemm as integers, ignoring scales. Returns false if a sum does not fit
// int32; such an element becomes the nearest int32. Requires operands of int8 codes and sizes as
// for Gemm; throws Error otherwise.
[[nodiscard]] bool GemmInt32(const GemmOperand& a, const GemmOperand& b, std::span<int32_t> out);

// Returns the library that computes mode library in this build: "oneDNN 2.6.3" or "Eigen 3.4.0".
const char* GemmLibrary();

}  // namespace numsim
