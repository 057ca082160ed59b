// Matrix products of float32 and float64. Rules: tensor.h.
#pragma once

#include "numsim/arith/accumulation_mode.h"
#include "numsim/ops/tensor.h"

namespace numsim {

// out = op(a) op(b), op the transpose where asked for. float32 under `rule` (gemm/gemm.h);
// float64 in float64, in an order of its own, whatever the rule. Requires contiguous matrices.
template <typename T>
void Multiply(In<T> a,
              bool transpose_a,
              In<T> b,
              bool transpose_b,
              const AccumulationMode& rule,
              MatrixSpan<T> out);

}  // namespace numsim
