// The kernel launches of quantized_device.cc.
#pragma once

#include <cstdint>

#include "numsim/backend/float_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// Replaces absmax[i] by the scale that the factory `maker` computes from it, and writes its inverse
// to inv_scales[i]. Without `reads_maxima`, absmax need not be initialised: for a rule that takes
// none. `tensor_absmax` is in device memory, or null for a rule without TakesTensorMaximum.
void MakeScalesOnDevice(const ScaleFactory& maker,
                        bool reads_maxima,
                        const float* tensor_absmax,
                        MatrixSpan<float> absmax,
                        MatrixSpan<float> inv_scales);

// Writes the scale of a tensor with that absolute maximum, both in device memory.
void MakeTensorScaleOnDevice(const ScaleFactory& maker,
                             const float* tensor_absmax,
                             float* tensor_scale,
                             DeviceStream& stream);

// Writes the given scale to *scale and its inverse to *inv_scale, both in device memory.
void SetScaleOnDevice(const Scale& given, float* scale, float* inv_scale, DeviceStream& stream);

// The arguments of a quantisation of rows that are read once, for the layout kRow and codes in the
// order of the input.
struct RowsCall {
  const EncodePlan& plan;
  ConstFloatSpan in;
  const ScaleFactory& maker;
  ArrayRandom random;
  uint8_t* codes;
  float* scales;
};

// Computes the maximum, scale and codes of each row. Returns false and does nothing if it cannot: for
// an empty matrix, 2^31 rows or more, rows of more than 32,768 elements or not a multiple of 16
// bytes, input not aligned to 16 bytes, codes not aligned to 8 bytes, or a plan without a fast
// encoder (quantize_cuda.cuh). With stochastic rounding it can for other rows: up to 96 KiB, a
// multiple of two tiles of the random stream (random/streams.h), beginning at a tile; codes aligned
// to 4 bytes.
bool QuantizeRowsOnDevice(const RowsCall& call);

// The arguments of a quantisation of blocks of 16 or 32 elements of a row that are read once, for
// codes in the order of the input.
struct BlocksCall {
  const EncodePlan& plan;
  ConstFloatSpan in;
  size_t block;
  const ScaleFactory& maker;
  const float* tensor_absmax;  // in device memory; null for a rule without TakesTensorMaximum
  uint8_t* codes;
  float* scales;
};

// Returns whether QuantizeBlocksOnDevice serves the layout: whole blocks of 16 or 32 elements, input
// and codes aligned to 16 bytes, and a plan with a fast encoder (quantize_cuda.cuh).
bool CanQuantizeBlocksOnDevice(const EncodePlan& plan,
                               ConstFloatSpan in,
                               const ScaleLayout& layout,
                               const void* codes);
// Computes the maximum, scale and codes of each block.
void QuantizeBlocksOnDevice(const BlocksCall& call);

namespace cuda {
// QuantizeRowsOnDevice with stochastic rounding.
bool QuantizeRowsDrawn(const RowsCall& call);
}  // namespace cuda

}  // namespace numsim
