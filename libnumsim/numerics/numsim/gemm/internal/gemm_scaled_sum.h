// Scaling and rounding of one sum, for the stores of a device and for tests on the host.
#pragma once

#include <bit>
#include <cstdint>

#include "numsim/base/host_device.h"

namespace numsim::cuda {

// Returns fl32(fl64(S * (sa * sb))), the definition of gemm.h. Cost: conversions to and from
// float64 run at an eighth of the rate of other instructions.
template <typename Sum>
NUMSIM_INLINE float ScaledExactly(Sum sum, float scale_a, float scale_b) {
  const double scale = static_cast<double>(scale_a) * static_cast<double>(scale_b);
  return static_cast<float>(static_cast<double>(sum) * scale);
}

// Returns the bf16 code, rounded to nearest even. Every NaN becomes 0x7FC0, as in encoding.
NUMSIM_INLINE uint32_t RoundToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0u;
  return (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
}

}  // namespace numsim::cuda
