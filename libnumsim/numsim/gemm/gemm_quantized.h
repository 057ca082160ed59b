// Quantised matrices as operands of products.
#pragma once

#include "numsim/gemm/gemm.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// Returns the matrix as an operand of Gemm, a view that holds as long as `matrix` does: its rows as the
// vectors, or its columns when `transposed`. Either way the codes stay as they are stored. Scales
// that change along the inner dimension cut it into segments, also of one element (blocks, by
// columns). Requires: of the rows not layout kColumn, of the columns not kRow.
GemmOperand AsOperand(const QuantizedMatrix& matrix, bool transposed);

}  // namespace numsim
