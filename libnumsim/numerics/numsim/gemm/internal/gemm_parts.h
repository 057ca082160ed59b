// The parts of Gemm that are not tile kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "numsim/gemm/internal/gemm_panel.h"

namespace numsim {

// --- Infinities and NaN in operands, for paths that leave them out of their sums. For gemm/gemm.cc
// only.

// Replaces the elements of `out` that have an infinity or a NaN among their operands. Each becomes
// infinite or NaN. The products of those special values decide which; if the other products alone
// overflow, the definition decides. On entry `out` holds the result without the special values.
// `segment` is the length of a segment.
void PutSpecials(const GemmOperand& a,
                 const OperandRange& range_a,
                 const GemmOperand& b,
                 const OperandRange& range_b,
                 const AccumulationMode& mode,
                 size_t segment,
                 std::span<float> out);

// --- Accumulation modes FORMAT and FORMAT:unfused, which round to a format after each product. For
// gemm/gemm.cc only.

// Writes sums[i * b.rows + j] = the accumulator after the products of the segment. Works on a row
// of accumulators at a time: each step is rounded to odd in float32 vectors, and from there to the
// format. Requires mode.format.mantissa_bits <= kMaxStepMantissa and products that float32 holds
// exactly.
void FormatSums(const GemmOperand& a,
                const GemmOperand& b,
                const AccumulationMode& mode,
                InnerRange segment,
                std::vector<double>& sums);

// The format's mantissa bits, the hidden bit and two more bits fit the 24 bits of float32.
inline constexpr int kMaxStepMantissa = 21;

// --- Accumulation mode exact: sums without rounding. For gemm/gemm.cc only.

// Writes sums[i * b.rows + j] = the exact sum over the segment, rounded to odd to float64. NaN and
// infinities count as 0. Returns false, and computes no sum, if the operands' exponents span more
// than 128-bit integers can hold.
bool ExactSums(const GemmOperand& a,
               const OperandRange& range_a,
               const GemmOperand& b,
               const OperandRange& range_b,
               InnerRange segment,
               std::vector<double>& sums);

// How the integers of an operand, in units of 2^unit, are cut into digits to base 256.
struct DigitCut {
  int unit = 0;
  int digits = 0;
};
struct DigitPlan {
  DigitCut a, b;
  int limbs = 0;  // numbers of 64 bits that hold a sum, in units of 1 and 2^32: 1 or 2
};

// Returns how to compute ExactSums by products of digits (gemm_paths_digits.h), or nothing if that
// is not possible or not faster. `products` is the length of a segment. As many products of digits
// as `rate` says take as long as one of float64 numbers.
std::optional<DigitPlan> PlanDigits(const GemmOperand& a,
                                    const OperandRange& range_a,
                                    const GemmOperand& b,
                                    const OperandRange& range_b,
                                    size_t products,
                                    int rate);

// --- Sums by their definition, one element at a time, which every other path must equal. Used by
// the scalar backend and for modes without a tile kernel. For gemm/gemm.cc only.

// Writes sums[i * b.rows + j] = Accumulate over the segment, as float64. Under mode exact the sums
// are rounded to odd.
void ReferenceSums(const GemmOperand& a,
                   const GemmOperand& b,
                   const AccumulationMode& mode,
                   InnerRange segment,
                   std::vector<double>& sums);

// Returns element (i, j) of ReferenceSums.
double ReferenceSum(const GemmOperand& a,
                    const GemmOperand& b,
                    const AccumulationMode& mode,
                    InnerRange segment,
                    size_t i,
                    size_t j);

// --- Plain GEMM by a linear algebra library, for mode library of gemm/gemm.h: by oneDNN if it was
// found when numsim was built, else by Eigen.

// A stored row-major matrix as an operand: rows x inner, or inner x rows if transposed.
template <typename Element>
struct LibraryFactor {
  const Element* data = nullptr;
  size_t rows = 0;
  size_t inner = 0;
  bool transposed = false;
};

// Writes out(i, j) = sum over k of a(i, k) b(j, k) in float32, a.rows x b.rows, on ThreadCount()
// threads. Requires equal inner >= 1, rows >= 1.
void LibraryProduct(const LibraryFactor<float>& a, const LibraryFactor<float>& b, float* out);
// The bf16 version: operands are bf16 codes, sums are float32. Does what WidenedProduct does, or,
// with oneDNN on a processor with AMX, uses AMX, which takes subnormals as zero.
void LibraryProduct(const LibraryFactor<uint16_t>& a, const LibraryFactor<uint16_t>& b, float* out);

// True if LibraryProduct multiplies bf16 faster than float32 on this processor.
bool MultipliesBf16();

// Computes the bf16 GEMM as the float32 GEMM of the same values.
void WidenedProduct(const LibraryFactor<uint16_t>& a, const LibraryFactor<uint16_t>& b, float* out);

// Does what Gemm does in mode library, for at least one element and one product.
void GemmByLibrary(const GemmOperand& a, const GemmOperand& b, std::span<float> out);

}  // namespace numsim
