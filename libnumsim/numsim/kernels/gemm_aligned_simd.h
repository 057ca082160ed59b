// The inner loops of the aligned sums of arith/accumulator.h (kAligned): one tile over a run of the
// inner dimension, as in gemm_simd.h. One thread.
#pragma once

#include <cstddef>

namespace numsim {

// A panel for the aligned sums of arith/accumulator.h: values, and of each value 2^e, e its
// exponent as that header defines it (0 for zero). No infinities, no NaN.
template <typename T>
struct AlignedPanel {
  const T* values;
  const T* powers;
};

struct AlignedSums {
  int fraction_bits;  // F
  int chunk;
};

// acc(r, c) = the accumulator after `depth` products in chunks; the last chunk may be shorter.
// In float32: requires that AlignedFitsFloat32(sums) and exponents of operands in
// [-kAlignedWindow, kAlignedWindow]. In float64: products of at most 48 bits, any exponents of
// float32 values.
void AlignedMultiplyTile(const AlignedSums& sums,
                         const AlignedPanel<float>& a,
                         const AlignedPanel<float>& b,
                         size_t depth,
                         float* acc);
void AlignedMultiplyTile(const AlignedSums& sums,
                         const AlignedPanel<double>& a,
                         const AlignedPanel<double>& b,
                         size_t depth,
                         float* acc);

// Exponents so small in magnitude that no scale, product or sum leaves float32's normal range: an
// accumulator is zero or at least 2^(-2 * 30 - 25).
inline constexpr int kAlignedWindow = 30;
// Whether a chunk of products of two significands below 2 fits int32 when it is aligned:
// significand_bits: of either operand, the hidden bit included.
bool AlignedFitsFloat32(const AlignedSums& sums, int significand_bits_a, int significand_bits_b);

}  // namespace numsim
