// The arithmetic of DelayedScale, for the host and for the kernels of delayed_scale_cuda.cu.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "numsim/base/host_device.h"
#include "numsim/quantize/scale.h"

namespace numsim {

// Returns the larger of two maxima. NaN counts as larger than any number.
NUMSIM_INLINE float LargerMaximum(float a, float b) { return a != a || a > b ? a : b; }

// True for a maximum that a scale can be computed from.
NUMSIM_INLINE bool SetsScale(float absmax) {
  return absmax > 0 && absmax <= std::numeric_limits<float>::max();
}

// Returns the power of two at least or at most `inv_scale`, a positive normal number: a scale
// rounded down has an inverse rounded up.
NUMSIM_INLINE double PowerOfTwoInverse(double inv_scale, ScaleRule rule) {
  constexpr uint64_t kOne = uint64_t{1} << 52;
  const uint64_t bits = std::bit_cast<uint64_t>(inv_scale);
  const bool up = rule == ScaleRule::kPow2Floor && bits % kOne != 0;
  return std::bit_cast<double>((bits / kOne + (up ? 1 : 0)) * kOne);
}

// Returns room / absmax, rounded as the rule says. The quotient is one float64 division; 53 bits
// are enough for the result to equal the exact quotient rounded once to float32, and for comparing
// it with powers of two: a quotient of floats that is not a power of two is further from one than
// float64's error. Requires SetsScale(absmax).
NUMSIM_INLINE float DelayedInvScale(double room, ScaleRule rule, float absmax) {
  double inv_scale = room / static_cast<double>(absmax);
  if (rule != ScaleRule::kAbsmax) inv_scale = PowerOfTwoInverse(inv_scale, rule);
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::min();
  if (inv_scale > static_cast<double>(kMost)) return kMost;
  const float rounded = static_cast<float>(inv_scale);
  return rounded < kLeast ? kLeast : rounded;
}

}  // namespace numsim
