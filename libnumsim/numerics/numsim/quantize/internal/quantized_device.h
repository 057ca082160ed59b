// QuantizeInto, QuantizeUnder, Dequantize and DecodeCodes (quantized_matrix.h) on a device. Only in
// builds with CUDA. Callers have checked shapes and prepared the buffers of `result`.
#pragma once

#include "numsim/quantize/quantized_matrix.h"

namespace numsim::cuda {

void QuantizeInto(ConstFloatSpan in, const QuantizeOptions& options, QuantizedMatrix& result);
void QuantizeUnder(const Scale& scale,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result);
void QuantizeUnder(DelayedScale& delayed,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result);

// Writes the values of the codes, multiplied by their scales if `scaled`.
void Dequantize(const QuantizedSpan& matrix, bool scaled, FloatSpan out);

}  // namespace numsim::cuda
