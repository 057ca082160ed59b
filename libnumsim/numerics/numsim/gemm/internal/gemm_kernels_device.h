// Gemm and GemmInt32 (gemm.h) on a device: the choice of a kernel. Only in builds with CUDA.
#pragma once

#include "numsim/gemm/gemm.h"

namespace numsim::cuda {

// The kernels that compute a GEMM.
enum class GemmKernel : uint8_t {
  kNone,     // no kernel serves the call
  kLibrary,  // tensor cores by cuBLASLt, with one scale per operand or per row
  kOwn,      // Hopper's tensor cores by numsim's kernel, with one scale per operand or per row
  kBlocks,   // Hopper's tensor cores by numsim's kernel, with scales of blocks
  kOrdered,  // one product after another
};

// Returns the kernel for these operands, which need not lie on a device: only formats, sizes, what
// is set, and the alignment of addresses matter. Requires what Gemm requires. Throws Error if
// `engine` names an implementation that does not support the GEMM.
GemmKernel ChooseKernel(const GemmOperand& a,
                        const GemmOperand& b,
                        const AccumulationMode& mode,
                        FloatSpan out,
                        DeviceGemmEngine engine);

// Implement Gemm and GemmInt32 for a device, after the checks of sizes. `out` has the result's shape.
void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          FloatSpan out,
          DeviceGemmEngine engine);
void GemmInt32(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out);

// Compute the GEMM of host operands on the calling thread's device if a kernel there gives the bits
// of the CPU, after values that tensor cores take are encoded. Otherwise return false, having done
// nothing.
bool GemmOffloaded(const GemmOperand& a,
                   const GemmOperand& b,
                   const AccumulationMode& mode,
                   FloatSpan out);
bool GemmInt32Offloaded(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out);

}  // namespace numsim::cuda
