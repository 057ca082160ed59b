// Products of arrays that lie on the host, by the device: what gemm/gemm.cc does under the
// backend cuda.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/gemm/gemm.h"

namespace numsim {

// Whether the device gives the bits of GemmByRule for those operands: formats and rule of
// MultipliesOnDevice but rule library, no scales along the inner dimension, int8 as codes and with
// few enough products for int32. Everything else is the processor's.
bool MultipliesOffloaded(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& rule);

// As GemmByRule and GemmInt32, whose sums all fit. Require MultipliesOffloaded (rule exact).
void GemmOnDevice(const GemmOperand& a,
                  const GemmOperand& b,
                  const AccumulationMode& rule,
                  std::span<float> out);
void GemmInt32OnDevice(const GemmOperand& a, const GemmOperand& b, std::span<int32_t> out);

}  // namespace numsim
