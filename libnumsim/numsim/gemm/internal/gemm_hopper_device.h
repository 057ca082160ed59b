// Our own product for Hopper's tensor cores (wgmma): operands in K-major order, scales, rounding
// and conversion in the store.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm_device.h"

namespace numsim::cuda {

// Whether MultiplyHopper serves this: a Hopper device; both int8, or e4m3fn and e5m2 in any pair
// but e5m2 x e5m2 (rule hopper-fp8-fast); not transposed; inner > 0, a multiple of 16; a.rows > 0;
// b.rows > 0, a multiple of 32; all below 2^30; codes and results aligned to 16 bytes.
bool ServesHopper(const DeviceGemmOperand& a,
                  const DeviceGemmOperand& b,
                  const MutableDeviceMatrix& out);

// As Gemm. Requires ServesHopper.
void MultiplyHopper(const DeviceGemmOperand& a,
                    const DeviceGemmOperand& b,
                    const MutableDeviceMatrix& out,
                    DeviceStream& stream);

}  // namespace numsim::cuda
