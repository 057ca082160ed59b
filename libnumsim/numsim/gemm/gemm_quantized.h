// Quantised matrices as operands of a GEMM.
#pragma once

#include "numsim/gemm/gemm.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// Returns the matrix as an operand of Gemm: its rows are the vectors, or its columns if
// `transposed`. The operand is a view, valid as long as `matrix`; the codes are not copied. Scales
// that change along the inner dimension cut it into segments, which may be one element long (block
// scales, with columns as vectors). Requires a layout other than kColumn for rows, and other than
// kRow for columns.
GemmOperand AsOperand(const QuantizedMatrix& matrix, bool transposed);

}  // namespace numsim
