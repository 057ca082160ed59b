// GEMM of host arrays on the device. gemm/gemm.cc uses it under backend cuda.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/gemm/gemm.h"

namespace numsim {

// Returns true if the device gives the bits of GemmByRule for these operands: if MultipliesOnDevice
// accepts formats and accumulation mode, the mode is not library, no scales change along the inner
// dimension, and int8 operands are given as codes with inner <= kMostProductsOfAnyInt8. The CPU
// computes everything else.
bool MultipliesOffloaded(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& rule);

// Do what GemmByRule and GemmInt32 (gemm.h) do. All sums of GemmInt32OnDevice fit int32. Require
// MultipliesOffloaded, for GemmInt32OnDevice under mode exact.
void GemmOnDevice(const GemmOperand& a,
                  const GemmOperand& b,
                  const AccumulationMode& rule,
                  std::span<float> out);
void GemmInt32OnDevice(const GemmOperand& a, const GemmOperand& b, std::span<int32_t> out);

}  // namespace numsim
