// Quantised matrices as operands of a GEMM.
#pragma once

#include "numsim/gemm/gemm.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// Returns the matrix as an operand of Gemm, at its place: its rows are the vectors, or its columns
// if `transposed`. Of codes in both orders it takes those in which each vector is contiguous. The
// operand is a view, valid as long as `matrix`; the codes are not copied. Scales that change along
// the inner dimension cut it into segments, which may be one element long (block scales, with
// columns as vectors). Throws Error for a layout that has one scale per element of the inner
// dimension, that is kColumn for rows and kRow for columns, and for a matrix whose codes or scales
// do not have the sizes of its shape and layout.
GemmOperand AsOperand(const QuantizedMatrix& matrix, bool transposed);

// Does the same for a quantised matrix in memory of another owner.
GemmOperand AsOperand(const QuantizedSpan& matrix, bool transposed);

// Returns a contiguous matrix of values as an operand: of format fp32, or bf16 if they are stored
// as bf16 on a device.
GemmOperand AsOperand(In<float> matrix, bool transposed);

}  // namespace numsim
