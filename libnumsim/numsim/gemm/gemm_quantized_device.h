// Quantised matrices on the device as operands of a GEMM.
#pragma once

#include "numsim/gemm/gemm_device.h"
#include "numsim/quantize/quantized_device.h"

namespace numsim {

// Returns the matrix as an operand of the device Gemm: its rows are the vectors, or its columns if
// `columns`. The operand is a view, valid as long as `matrix`; it takes the codes in either stored
// order. Requires layout kTensor or kRow, or with `columns` kTensor or kColumn.
DeviceGemmOperand AsOperand(const DeviceQuantizedMatrix& matrix, bool columns);

}  // namespace numsim
