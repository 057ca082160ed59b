// Quantised matrices as operands of a GEMM.
#pragma once

#include "numsim/gemm/gemm.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// Returns how scales of a layout apply to an operand that is stored as a matrix of this shape, whose
// vectors are the rows, or the columns if `transposed`. Scales that change along the inner dimension
// cut it into segments. These may be one element long: for block scales with columns as vectors, and
// for one scale per element of the inner dimension (kColumn for rows, kRow for columns). A segment
// that would cover a whole vector is given as 0. The result refers to `data`, which must have
// layout.Count(rows, cols) scales.
GemmScales OperandScales(const ScaleLayout& layout,
                         MatrixShape shape,
                         MatrixSpan<const float> data,
                         bool transposed);

// Returns the matrix as an operand of Gemm, at its place: its rows are the vectors, or its columns
// if `transposed`. Of codes in both orders it takes those in which each vector is contiguous. The
// operand is a view, valid as long as `matrix`; the codes are not copied. Scales are those of
// OperandScales. Throws Error for a matrix whose codes or scales do not have the sizes of its shape
// and layout.
GemmOperand AsOperand(const QuantizedMatrix& matrix, bool transposed);

// Does the same for a view.
GemmOperand AsOperand(const QuantizedSpan& matrix, bool transposed);

// Returns a matrix of values as an operand, of format fp32 or that of its element.
GemmOperand AsOperand(ConstFloatSpan matrix, bool transposed);

}  // namespace numsim
