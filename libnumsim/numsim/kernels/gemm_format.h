// Rules FORMAT and FORMAT:unfused: sums that round to a format after each product. For
// kernels/gemm.cc only.
#pragma once

#include <vector>

#include "numsim/kernels/gemm_panel.h"

namespace numsim {

// sums[i * b.rows + j] = the accumulator after the products of the segment, a row of accumulators
// at a time: each step is rounded to odd in float32 vectors and from there to the format.
// Requires rule.format.mantissa_bits <= kMaxStepMantissa and products that float32 holds exactly.
void FormatSums(const GemmOperand& a,
                const GemmOperand& b,
                const Accumulator& rule,
                InnerRange segment,
                std::vector<double>& sums);

// Two bits more than the format's, and the hidden one, fit the 24 of float32.
inline constexpr int kMaxStepMantissa = 21;

}  // namespace numsim
