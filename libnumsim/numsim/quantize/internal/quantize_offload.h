// The functions of quantize.h for host arrays under the backend cuda. They copy arguments to the
// device and results back, on the calling thread's stream. The contracts are those of quantize.h,
// except that callers have already checked sizes. Arrays must not be empty. Only in builds with
// CUDA.
#pragma once

#include <span>

#include "numsim/quantize/quantize.h"

namespace numsim {

void AbsmaxOnDevice(std::span<const float> in,
                    MatrixShape shape,
                    const ScaleLayout& layout,
                    std::span<float> absmax);
float AbsmaxOfAllOnDevice(std::span<const float> in);

// Requires `codes` to have room for in.size() codes of plan.format.StorageBytes() bytes.
void QuantizeOnDevice(const EncodePlan& plan,
                      std::span<const float> in,
                      MatrixShape shape,
                      const ScaleLayout& layout,
                      std::span<const float> inv_scales,
                      void* codes,
                      const ArrayRandom& random,
                      bool transpose);
void DequantizeOnDevice(const FormatSpec& format,
                        const void* codes,
                        MatrixShape shape,
                        const ScaleLayout& layout,
                        std::span<const float> scales,
                        std::span<float> out);

}  // namespace numsim
