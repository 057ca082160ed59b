// GEMM of operands that lie on a device. Only in builds with CUDA.
#pragma once

#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_device.h"

namespace numsim {

// The kernels that GemmAtPlace chooses from.
enum class PlaceKernel : uint8_t {
  kNone,         // no kernel serves the call
  kTensorCores,  // tensor cores, with one scale per operand or per row (gemm_device.h)
  kBlocks,       // Hopper's tensor cores, with scales of blocks
  kOrdered,      // one product after another
};

// Returns the kernel for these operands, which need not lie on a device: only formats, sizes, what
// is set, and the alignment of addresses matter. Requires what Gemm requires.
PlaceKernel KernelAtPlace(const GemmOperand& a,
                          const GemmOperand& b,
                          const AccumulationMode& mode,
                          MatrixSpan<float> out);

// Returns the operand as tensor cores take it, with its scales if they are as DeviceGemmOperand has
// them. Requires codes.
DeviceGemmOperand ForTensorCores(const GemmOperand& x);

// Implements Gemm of gemm.h for a place that is not the host.
void GemmAtPlace(const GemmOperand& a,
                 const GemmOperand& b,
                 const AccumulationMode& mode,
                 MatrixSpan<float> out);

}  // namespace numsim
