// Rules FORMAT and FORMAT:unfused: sums that round to a format after each product. For
// kernels/gemm.cc only.
#pragma once

#include <vector>

#include "numsim/kernels/gemm_panel.h"

namespace numsim {

// sums[i * b.rows + j] = the accumulator after the products of the segment. Array arithmetic of
// kernels/arithmetic.h, a row of sums at a time.
void FormatSums(const GemmOperand& a,
                const GemmOperand& b,
                const Accumulator& rule,
                InnerRange segment,
                std::vector<double>& sums);

}  // namespace numsim
