// Products by their definition, one element at a time: what every other path must equal. Used by
// the scalar backend and for rules without a tile kernel. For kernels/gemm.cc only.
#pragma once

#include <vector>

#include "numsim/kernels/gemm_panel.h"

namespace numsim {

// sums[i * b.rows + j] = Accumulate over the segment, in float64; for rule exact rounded to odd.
void ReferenceSums(const GemmOperand& a,
                   const GemmOperand& b,
                   const Accumulator& rule,
                   InnerRange segment,
                   std::vector<double>& sums);

// Element (i, j) of these.
double ReferenceSum(const GemmOperand& a,
                    const GemmOperand& b,
                    const Accumulator& rule,
                    InnerRange segment,
                    size_t i,
                    size_t j);

}  // namespace numsim
