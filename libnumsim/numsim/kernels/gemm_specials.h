// Infinities and NaN among operands, for paths that leave them out of their sums. For
// kernels/gemm.cc only.
#pragma once

#include <span>

#include "numsim/kernels/gemm_panel.h"

namespace numsim {

// Puts into `out` the elements that have an infinity or a NaN among their operands: these are
// infinite or NaN, and only products with one decide which. `out` holds the result without them;
// `segment` is the length of a segment.
void PutSpecials(const GemmOperand& a,
                 const OperandRange& range_a,
                 const GemmOperand& b,
                 const OperandRange& range_b,
                 const Accumulator& rule,
                 size_t segment,
                 std::span<float> out);

}  // namespace numsim
