// Quantised matrices on a device, for quantized_matrix.cc. Only in builds with CUDA. Callers have
// checked shapes and prepared the buffers of `result`.
#pragma once

#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

void QuantizeOnDevice(In<float> in, const QuantizeOptions& options, QuantizedMatrix& result);
void QuantizeUnderOnDevice(const Scale& scale,
                           In<float> in,
                           const QuantizeOptions& options,
                           QuantizedMatrix& result);
void QuantizeUnderOnDevice(DelayedScale& delayed,
                           In<float> in,
                           const QuantizeOptions& options,
                           QuantizedMatrix& result);

// Writes the values of the codes, multiplied by their scales if `scaled`.
void DequantizeOnDevice(const QuantizedMatrix& matrix, bool scaled, MatrixSpan<float> out);

}  // namespace numsim
