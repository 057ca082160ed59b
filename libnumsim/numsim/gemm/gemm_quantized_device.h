// Quantised matrices on the device as operands of products.
#pragma once

#include "numsim/gemm/gemm_device.h"
#include "numsim/quantize/quantized_device.h"

namespace numsim {

// Returns the rows of the matrix, or its columns, as the vectors of a product. Requires what AsOperand of
// gemm_quantized.h does; takes whichever stored order there is. Layouts kTensor and kRow (kColumn
// when `columns`) alone.
DeviceGemmOperand AsOperand(const DeviceQuantizedMatrix& matrix, bool columns);

}  // namespace numsim
