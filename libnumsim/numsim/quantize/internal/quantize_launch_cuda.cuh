// The kernels of quantize_device.h that lie in files of their own. Each returns false where it does
// not serve: the format, the alignment or the layout of scales.
#pragma once

#include "numsim/backend/device_matrix.h"
#include "numsim/quantize/quantize.h"

namespace numsim::cuda {

// What all of them get.
struct QuantizeCall {
  const EncodePlan& plan;
  DeviceMatrix in;
  ScaleLayout layout;
  const float* inv_scales;
  void* codes;
  void* transposed;
  ArrayRandom random;
};

// One factor for everything, codes in order.
bool QuantizeFlat(const QuantizeCall& call, DeviceStream& stream);
// Tiles in shared memory: either order or both.
bool QuantizeTiles(const QuantizeCall& call, DeviceStream& stream);
// Everything.
void QuantizeAny(const QuantizeCall& call, DeviceStream& stream);

}  // namespace numsim::cuda
