// Quantised matrices on the device as operands of products.
#pragma once

#include "numsim/kernels/gemm_device.h"
#include "numsim/scaling/quantized_device.h"

namespace numsim {

// Returns the rows of the matrix, or its columns, as the vectors of a product. Requires what AsOperand of
// gemm_quantized.h does; takes whichever stored order there is. Layouts kTensor and kRow (kColumn
// when `columns`) alone.
DeviceGemmOperand AsOperand(const DeviceQuantizedMatrix& matrix, bool columns);

}  // namespace numsim
