// Products under the block-scaled modes (kBlockScaled of arith/accumulation_mode.h), in which scales
// are operands of the unit. For gemm.cc and epilogue.cc.
#pragma once

#include <span>

#include "numsim/gemm/gemm.h"

namespace numsim {

// Writes out(i, j) = the sum of the unit, before the scales of the tensors multiply it. Requires
// contiguous operands on the host and inner >= 1. Throws Error if a format or a scale is not one of
// the unit, as Gemm says.
void BlockScaledSums(const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     std::span<float> out);

// Returns the scale of the tensor, or of that row of it, 1 if it has none. Requires the host.
float TensorScaleOf(const GemmOperand& x, size_t row);

// Does what Gemm does under a block-scaled mode, on the host.
void GemmBlockScaled(const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     std::span<float> out);

}  // namespace numsim
