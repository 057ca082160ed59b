// Copies of operands and results of GEMMs where a kernel needs another order, size or address.
#pragma once

#include <cstdint>
#include <functional>

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_library_device.h"

namespace numsim {

// Returns true if the address is a multiple of 16, as fast kernels need.
inline bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

// Returns n rounded up to a multiple of 16, of which fast kernels need rows and inner dimensions.
inline size_t RoundedUp(size_t n) { return (n + 15) / 16 * 16; }

// Returns `x` padded with zeros to `rows` x `inner`, at an aligned address and, if `turned`, not
// transposed. Copies `x` into `copies` only if that is necessary.
DeviceGemmOperand Prepared(const DeviceGemmOperand& x,
                           size_t rows,
                           size_t inner,
                           bool turned,
                           OperandCopies& copies,
                           DeviceStream& stream);

// Returns true if cuda::ServesHopper will support these operands and this result once prepared.
bool ServesHopperPrepared(const DeviceGemmOperand& a,
                          const DeviceGemmOperand& b,
                          MatrixSpan<float> out);

// One of numsim's kernels for Hopper.
using HopperKernel = std::function<void(
    const DeviceGemmOperand&, const DeviceGemmOperand&, MatrixSpan<float>, DeviceStream&)>;

// Runs the kernel on prepared operands and, if the result must be padded too, copies the result.
// Requires ServesHopperPrepared.
void MultiplyPrepared(const DeviceGemmOperand& a,
                      const DeviceGemmOperand& b,
                      MatrixSpan<float> out,
                      const HopperKernel& kernel);

}  // namespace numsim
