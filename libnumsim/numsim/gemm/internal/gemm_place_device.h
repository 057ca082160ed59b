// GEMM of operands that lie on a device. Only in builds with CUDA.
#pragma once

#include "numsim/gemm/gemm.h"

namespace numsim {

// Implements Gemm of gemm.h for a place that is not the host.
void GemmAtPlace(const GemmOperand& a,
                 const GemmOperand& b,
                 const AccumulationMode& rule,
                 MatrixSpan<float> out);

}  // namespace numsim
