// Matmuls of float32 and float64 matrices. elementwise.h states the rules of all operations.
#pragma once

#include "numsim/arith/accumulation_mode.h"
#include "numsim/backend/matrix.h"

namespace numsim {

// out = op(a) op(b), where op transposes if requested. float32 is computed by Gemm (gemm/gemm.h) in
// `mode`. float64 ignores `mode` and computes in float64, in a fixed order.
// Requires contiguous matrices.
template <typename T>
void Multiply(In<T> a,
              bool transpose_a,
              In<T> b,
              bool transpose_b,
              const AccumulationMode& mode,
              MatrixSpan<T> out);

}  // namespace numsim
