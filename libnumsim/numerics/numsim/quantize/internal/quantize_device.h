// The functions of quantize.h for matrices of a device, in the order of its stream. Callers have
// checked sizes and places. Only in builds with CUDA.
#pragma once

#include "numsim/backend/float_matrix.h"
#include "numsim/quantize/quantize.h"

namespace numsim::cuda {

void Absmax(ConstFloatSpan in, const ScaleLayout& layout, MatrixSpan<float> absmax);
void AbsmaxOfAll(ConstFloatSpan in, MatrixSpan<float> absmax);

// Writes codes of plan.format.StorageBytes() bytes, 1 or 2: to `codes` in the order of the input, and
// to `transposed` as the cols x rows matrix codes^T. Either may be null; for both, the input is read
// once.
void Quantize(const EncodePlan& plan,
              ConstFloatSpan in,
              const ScaleLayout& layout,
              MatrixSpan<const float> inv_scales,
              void* codes,
              void* transposed,
              const ArrayRandom& random);

void Dequantize(const FormatSpec& format,
                const void* codes,
                const ScaleLayout& layout,
                MatrixSpan<const float> scales,
                FloatSpan out);

void Convert(ConstFloatSpan in, FloatSpan out);

}  // namespace numsim::cuda
