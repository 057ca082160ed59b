// GEMM of host arrays on the device. gemm/gemm.cc uses it under backend cuda.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/gemm/gemm.h"

namespace numsim {

// Returns true if a kernel of the device gives the bits of Gemm for these operands, after
// values that tensor cores take are encoded. The CPU computes everything else.
bool MultipliesOffloaded(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode);
// Returns true if all sums of int8 codes of that inner dimension fit the int32 of the device.
bool MultipliesInt32Offloaded(size_t inner);

// Do what Gemm and GemmInt32 (gemm.h) do, under MultipliesOffloaded and
// MultipliesInt32Offloaded.
void GemmOnDevice(const GemmOperand& a,
                  const GemmOperand& b,
                  const AccumulationMode& mode,
                  std::span<float> out);
void GemmInt32OnDevice(const GemmOperand& a, const GemmOperand& b, std::span<int32_t> out);

}  // namespace numsim
