// A GEMM whose sums take one product after another, as the modes fp32, fp64 and fp32-chunked of the
// CPU do: slow beside tensor cores, and exact for every format.
#pragma once

#include <cstddef>

#include "numsim/backend/float_matrix.h"

namespace numsim::cuda {

// `rows` vectors of float32 values of length `inner`, and their scales as in GemmScales.
struct OrderedOperand {
  const float* values = nullptr;
  size_t rows = 0, inner = 0;
  bool transposed = false;
  const float* scales = nullptr;  // null: all 1
  size_t row_group = 1, row_stride = 0, segment_stride = 0;
};

// Rows of `a` that a launch takes under every mode.
inline constexpr size_t kMostOrderedRows = size_t{65535} * 64;

struct OrderedSums {
  bool float64 = false;  // acc = fl64(acc + a b), otherwise fl32
  size_t promote = 0;    // > 0: so many products are summed from +0, and their sums in float32
  size_t segment = 0;    // elements that share scales along the inner dimension; > 0
  float nan = 0;         // the result that replaces every NaN
};

// Writes out(i, j), float32 or bf16, as gemm.h defines it. Requires inner > 0, no promotion of
// float64 sums, and at least one result.
void MultiplyOrdered(const OrderedOperand& a,
                     const OrderedOperand& b,
                     const OrderedSums& sums,
                     FloatSpan out);

}  // namespace numsim::cuda
