// float64 bit patterns as exact values.
#pragma once

#include <cstdint>

#include "numsim/rounding/unrounded.h"

namespace numsim {

inline constexpr uint64_t kFloat64Sign = uint64_t{1} << 63;
inline constexpr uint64_t kFloat64Infinity = uint64_t{0x7FF} << 52;
inline constexpr uint64_t kFloat64Quiet = uint64_t{1} << 51;

// Returns the exact value of a float64 bit pattern.
inline Unrounded ExactFloat64(uint64_t bits) noexcept {
  Unrounded x;
  x.negative = (bits & kFloat64Sign) != 0;
  const uint64_t magnitude = bits & ~kFloat64Sign;
  if (magnitude >= kFloat64Infinity) {
    x.kind = magnitude > kFloat64Infinity ? NumberKind::kNan : NumberKind::kInfinity;
    return x;
  }
  const int field = static_cast<int>(magnitude >> 52);
  const uint64_t mantissa = magnitude & ((uint64_t{1} << 52) - 1);
  x.significand = field == 0 ? mantissa : mantissa | (uint64_t{1} << 52);
  x.exponent = (field == 0 ? 1 : field) - 1075;
  return x;
}

// Rounds a float64 once, and raises kInvalid also for a signalling NaN.
inline Rounded EncodeFloat64(const EncodePlan& plan, uint64_t bits, uint32_t random) noexcept {
  Rounded result = EncodeUnrounded(plan, ExactFloat64(bits), random);
  const bool nan = (bits & ~kFloat64Sign) > kFloat64Infinity;
  if (nan && (bits & kFloat64Quiet) == 0) result.flags |= kInvalid;
  return result;
}

}  // namespace numsim
