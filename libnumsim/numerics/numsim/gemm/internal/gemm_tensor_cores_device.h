// GEMMs on tensor cores with one scale per operand or per row: by cuBLASLt, or by numsim's kernel. For
// gemm_kernels_device.cc.
#pragma once

#include <string>

#include "numsim/gemm/gemm.h"

namespace numsim::cuda {

// Returns the formats and sizes of a GEMM for messages.
std::string TextOf(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode);

// Throws Error unless the address of the operand's elements is aligned to their size.
void RequireAligned(const GemmOperand& x);

// Computes the GEMM by cuBLASLt, and what its epilogue cannot do by a numsim pass. Requires
// MultipliesOnDevice, HasScalesOfRows, and at least one product.
void MultiplyByLibrary(const GemmOperand& a,
                       const GemmOperand& b,
                       const AccumulationMode& mode,
                       FloatSpan out);
// Does the same for the exact sums of int8, ignoring scales.
void MultiplyInt32ByLibrary(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out);

// Returns true if numsim's own kernel computes the GEMM.
bool ServesOwn(const GemmOperand& a,
               const GemmOperand& b,
               const AccumulationMode& mode,
               FloatSpan out);
// Returns true if it is the faster one: for int8 always, for fp8 if cuBLASLt would need another pass
// for the scales. Requires ServesOwn.
bool PrefersOwn(const GemmOperand& a, const GemmOperand& b);

}  // namespace numsim::cuda
