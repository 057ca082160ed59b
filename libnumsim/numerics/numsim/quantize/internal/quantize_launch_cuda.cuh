// The launches of the kernels behind Quantize of quantize_device.h, each in its own file. A launch
// returns false and does nothing if its kernel does not serve the plan, alignment or layout of
// scales.
#pragma once

#include "numsim/backend/float_matrix.h"
#include "numsim/quantize/quantize.h"

namespace numsim::cuda {

// The arguments of Quantize (quantize_device.h).
struct QuantizeCall {
  const EncodePlan& plan;
  ConstFloatSpan in;
  ScaleLayout layout;
  const float* inv_scales;
  void* codes;
  void* transposed;
  ArrayRandom random;
};

// Serves one factor for the whole matrix and codes in the order of the input.
bool QuantizeFlat(const QuantizeCall& call, DeviceStream& stream);
// Serves codes in the order of the input, transposed, or both, by tiles in shared memory.
bool QuantizeTiles(const QuantizeCall& call, DeviceStream& stream);
// Serves every call, by the device's cast.
void QuantizeInParts(const QuantizeCall& call, DeviceStream& stream);

}  // namespace numsim::cuda
