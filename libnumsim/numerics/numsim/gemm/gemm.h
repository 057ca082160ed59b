// GEMM of matrices of codes or floats under a named accumulation mode.
#pragma once

#include <cstdint>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/backend/float_matrix.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// The scales of one operand. Element (row, k) of the operand stands for
//   value(row, k) * data[row / row_group * row_stride + k / segment * segment_stride]
// where k / segment is read as 0 if segment == 0. If `data` is empty, all scales are 1.
struct GemmScales {
  MatrixSpan<const float> data = {};  // a vector, at the place of the operand
  size_t row_group = 1;               // >= 1
  size_t row_stride = 0;              // 0: one scale for all rows
  size_t segment = 0;  // elements per scale along the inner dimension; 0: all share one
  size_t segment_stride = 0;
  // Read by block-scaled modes alone: the scale T of the operand's tensor, 1 x 1 at the place of the
  // operand, or one for each row. Each scale of `data` is then fl32(S T), and S enters the unit. Empty:
  // T is 1.
  MatrixSpan<const float> tensor = {};

  // Returns the scale of a row in a segment. Requires the host.
  float At(size_t row, size_t segment_index) const {
    if (data.Empty()) return 1.0f;
    const size_t along = segment == 0 ? 0 : segment_index * segment_stride;
    return data.data[row / row_group * row_stride + along];
  }
};

// An operand of a GEMM: `rows` vectors of length `inner`, the inner dimension. They are the rows of a
// stored matrix, or its columns if `transposed`. Exactly one of values, codes8 and codes16 is set:
// float32 values on the grid of `format`, or codes of it (format.StorageBytes() each). It is that
// matrix, at any place, with any stride; or all its elements as one row.
struct GemmOperand {
  // ("= {}" lets a designated initialiser leave members out without a warning.)
  FormatSpec format = {};
  MatrixSpan<const float> values = {};
  MatrixSpan<const uint8_t> codes8 = {};
  MatrixSpan<const uint16_t> codes16 = {};
  size_t rows = 0;
  size_t inner = 0;
  bool transposed = false;
  GemmScales scales = {};

  // Returns the place of what is set; the host if nothing is.
  Place place() const {
    if (codes8.data != nullptr) return codes8.place;
    return codes16.data != nullptr ? codes16.place : values.place;
  }
  // Returns the address of what is set, or null.
  const void* data() const {
    if (codes8.data != nullptr) return codes8.data;
    return codes16.data != nullptr ? static_cast<const void*>(codes16.data) : values.data;
  }
  // Returns true if the operand is codes, not floats.
  bool IsCodes() const { return values.data == nullptr; }
  // Returns the shape of the stored matrix.
  MatrixShape Stored() const {
    return transposed ? MatrixShape{inner, rows} : MatrixShape{rows, inner};
  }
};

// The implementation that computes a GEMM on a device's tensor cores.
enum class DeviceGemmEngine : uint8_t {
  kAuto,     // the faster one of those that support the GEMM
  kLibrary,  // cuBLASLt, followed by a numsim pass for what cuBLASLt's epilogue cannot do
  kOwn,      // numsim's kernel for Hopper's tensor cores, which scales and rounds in its store
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
// Under a block-scaled mode (mxf8f6f4, mxf4, mxf4nvf4) scales are operands of the unit, and there is
// one sum S over the whole inner dimension; without scales along the inner dimension, all blocks of a
// vector have the same scale. out is S, or with scales of tensors, or rows, fl32(fl64(S * (Ta * Tb))).
//
// The result is rounded once, when it is stored, to the element of `out`: to bf16 (nearest even) if
// that is kBfloat16. Operands and a contiguous result are at one place, where the call runs; on a
// device no call waits. The bits depend neither on the place, nor on backend, thread count,
// `transposed` or strides, except under mode library. On the host, all modes are served. On a device:
//   fp32, fp64, fp32-chunked:N    operands of any format, any scales
//   exact                         int8
//   library, tensor core modes    codes, as MultipliesOnDevice (gemm_device.h) says, with one scale
//                                 per operand or per row
//   exact (int8), hopper-fp8*     on Hopper also segments of a multiple of 128 elements (of 128
//                                 alone under hopper-fp8)
// On the host, mode library multiplies the scales into the operands first; or, where it multiplies
// bf16 (codes of it, and formats within it where AMX makes that faster) without scales along the inner
// dimension, it scales the result. Under mode exact, int8 operands (the two's complement grid,
// including -128) are added as integers, up to inner == 2^38. NaN results are NanResult(mode). A bf16
// NaN is 0x7FC0, or 0x7FFF where cuBLASLt itself rounds to bf16, which it does if there are no scales and
// the sums are not those of several parts. inner == 0 gives +0.
//
// Requires equal inner, equal segment lengths if both operands have segments, rows * inner elements,
// scales for every row and segment, a.rows * b.rows results, and no overlap; under a block-scaled
// mode also scales that are numbers of the mode's format (mode.format; NaN if it has one), each for a
// multiple of LeastBlock(mode) elements, and with groups (mxf4, mxf4nvf4) operands of e2m1fn. Throws
// Error otherwise; on a device also
// - for a GEMM that it does not serve, and if `engine` does not support it;
// - if cuBLASLt has no algorithm that leaves the inner dimension unsplit, as under hopper-fp8 with
//   few results and long sums (64 x 256 results of 8192 products, cuBLASLt 13.1);
// - for more rows of `a` than a launch takes (4 million under fp64, fp32-chunked and exact, 8 million
//   under fp32).
// Under backend cuda, host operands are copied to the device if a kernel there gives the same bits.
// Cost on tensor cores: fastest with addresses aligned to 16 bytes and with inner and rows that are
// multiples of 16; other shapes are padded in a copy. Transposed 8-bit operands are first transposed
// in a copy.
void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          FloatSpan out,
          DeviceGemmEngine engine = DeviceGemmEngine::kAuto);

// Writes the exact sums of Gemm as integers, ignoring scales. Returns false if a sum does not fit
// int32; such an element becomes the nearest int32. Requires operands of int8 codes and sizes as
// for Gemm, and on a device inner <= kMostProductsOfAnyInt8; throws Error otherwise.
[[nodiscard]] bool GemmInt32(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out);

// Returns the library that computes mode library in this build: "oneDNN 2.6.3" or "Eigen 3.4.0".
const char* GemmLibrary();

}  // namespace numsim
