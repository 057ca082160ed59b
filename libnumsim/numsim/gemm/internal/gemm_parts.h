// The parts of Gemm that are not tile kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/gemm/internal/gemm_panel.h"

namespace numsim {

// Infinities and NaN among operands, for paths that leave them out of their sums. For
// gemm/gemm.cc only.

// Puts into `out` the elements that have an infinity or a NaN among their operands: these are
// infinite or NaN, and only products with one decide which. `out` holds the result without them;
// `segment` is the length of a segment.
void PutSpecials(const GemmOperand& a,
                 const OperandRange& range_a,
                 const GemmOperand& b,
                 const OperandRange& range_b,
                 const AccumulationMode& rule,
                 size_t segment,
                 std::span<float> out);

// Rules FORMAT and FORMAT:unfused: sums that round to a format after each product. For
// gemm/gemm.cc only.

// sums[i * b.rows + j] = the accumulator after the products of the segment, a row of accumulators
// at a time: each step is rounded to odd in float32 vectors and from there to the format.
// Requires rule.format.mantissa_bits <= kMaxStepMantissa and products that float32 holds exactly.
void FormatSums(const GemmOperand& a,
                const GemmOperand& b,
                const AccumulationMode& rule,
                InnerRange segment,
                std::vector<double>& sums);

// Two bits more than the format's, and the hidden one, fit the 24 of float32.
inline constexpr int kMaxStepMantissa = 21;

// Rule exact: sums without rounding. For gemm/gemm.cc only.

// sums[i * b.rows + j] = the exact sum over the segment, rounded to odd to float64. NaN and
// infinities count as 0. Returns false, and does nothing, where the exponents of the operands span
// more than this way of adding can hold.
bool ExactSums(const GemmOperand& a,
               const OperandRange& range_a,
               const GemmOperand& b,
               const OperandRange& range_b,
               InnerRange segment,
               std::vector<double>& sums);

// Products by their definition, one element at a time: what every other path must equal. Used by
// the scalar backend and for rules without a tile kernel. For gemm/gemm.cc only.

// sums[i * b.rows + j] = Accumulate over the segment, in float64; for rule exact rounded to odd.
void ReferenceSums(const GemmOperand& a,
                   const GemmOperand& b,
                   const AccumulationMode& rule,
                   InnerRange segment,
                   std::vector<double>& sums);

// Element (i, j) of these.
double ReferenceSum(const GemmOperand& a,
                    const GemmOperand& b,
                    const AccumulationMode& rule,
                    InnerRange segment,
                    size_t i,
                    size_t j);

// Plain products by a linear algebra library: rule library of gemm/gemm.h. oneDNN where it was
// found when numsim was built, else Eigen.

// A stored row-major matrix as a factor: rows x inner, or inner x rows when transposed.
template <typename Element>
struct LibraryFactor {
  const Element* data = nullptr;
  size_t rows = 0;
  size_t inner = 0;
  bool transposed = false;
};

// out(i, j) = sum over k of a(i, k) b(j, k) in float32, a.rows x b.rows, on ThreadCount() threads.
// Requires equal inner >= 1, rows >= 1.
void LibraryProduct(const LibraryFactor<float>& a, const LibraryFactor<float>& b, float* out);
// The same of bf16 codes, added in float32: as WidenedProduct, or where the processor has a matrix
// unit for bf16 (AMX) and oneDNN is there, by that unit, to which subnormals are zero.
void LibraryProduct(const LibraryFactor<uint16_t>& a, const LibraryFactor<uint16_t>& b, float* out);

// The bf16 product as the float32 product of the same values, which are float32 values too.
void WidenedProduct(const LibraryFactor<uint16_t>& a, const LibraryFactor<uint16_t>& b, float* out);

}  // namespace numsim
