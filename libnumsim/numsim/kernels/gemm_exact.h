// Rule exact: sums without rounding. For kernels/gemm.cc only.
#pragma once

#include <vector>

#include "numsim/kernels/gemm_panel.h"

namespace numsim {

// sums[i * b.rows + j] = the exact sum over the segment, rounded to odd to float64. NaN and
// infinities count as 0. Returns false, and does nothing, where the exponents of the operands span
// more than this way of adding can hold.
bool ExactSums(const GemmOperand& a,
               const OperandRange& range_a,
               const GemmOperand& b,
               const OperandRange& range_b,
               InnerRange segment,
               std::vector<double>& sums);

}  // namespace numsim
