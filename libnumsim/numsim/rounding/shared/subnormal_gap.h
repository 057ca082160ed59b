// Rounding in formats with a subnormal gap between their subnormals and normals
// (bitsandbytes' map [bnb]).
#pragma once

#include <cstdint>

#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/shared/encode_scalar.h"

namespace numsim {

// The conversions on either side of the subnormal gap: to the format whose normals reach
// down to the subnormals' spacing, which has equal codes below the subnormal gap, and to
// the one without a subnormal gap.
struct SubnormalGapPlans {
  EncodePlan below, above;
};
SubnormalGapPlans MakeSubnormalGapPlans(const EncodePlan& plan) noexcept;

// Returns the code of a float64, as EncodeF64. Requires
// plan.format.subnormal_shift > 0. In the subnormal gap the discarded fraction is (|x| -
// low) / (high - low), whose denominator is not a power of two, so it is
// compared as an exact quotient of integers.
uint32_t EncodeWithSubnormalGap(const EncodePlan& plan,
                                uint64_t value_bits,
                                uint32_t random) noexcept;

namespace scalar {

// 2^54 * 2^33 needs 87 bits.
// Whether the magnitude low + numerator/denominator * (high - low) goes to
// `high`, whose code is even (the first normal) while that of `low` is odd.
NUMSIM_HOST_DEVICE inline bool RoundsToHigh(const Rounding& rounding,
                                            bool negative,
                                            Uint128 numerator,
                                            Uint128 denominator,
                                            uint32_t random) {
  switch (rounding.mode) {
    case RoundingMode::kNearestEven:
    case RoundingMode::kNearestAway:
      return 2 * numerator >= denominator;
    case RoundingMode::kTowardZero:
    case RoundingMode::kToOdd:
      return false;
    case RoundingMode::kUp:
      return !negative && numerator != 0;
    case RoundingMode::kDown:
      return negative && numerator != 0;
    case RoundingMode::kStochastic:
      break;
  }
  const int n = rounding.random_bits;
  const Uint128 range = Uint128{1} << n;
  const Uint128 r = random & (range - 1);
  const Uint128 scaled = numerator << n;
  switch (rounding.variant) {
    case StochasticVariant::kA:
      return scaled / denominator + r >= range;
    case StochasticVariant::kB:
      return (2 * scaled) / denominator + 2 * r + 1 >= 2 * range;
    case StochasticVariant::kC: {
      const Uint128 floor = scaled / denominator;
      const Uint128 twice_rest = 2 * (scaled % denominator);
      const bool up = twice_rest > denominator || (twice_rest == denominator && (floor & 1) != 0);
      return floor + (up ? 1 : 0) + r >= range;
    }
  }
  return false;
}

// EncodeWithSubnormalGap with its plans made before, on host and device.
NUMSIM_HOST_DEVICE inline uint32_t EncodeWithSubnormalGap(const EncodePlan& plan,
                                                          const SubnormalGapPlans& plans,
                                                          uint64_t value_bits,
                                                          uint32_t random) {
  constexpr int kMantissaBits = F64Lanes::kMantissaBits;
  const FormatSpec& format = plan.format;
  const uint64_t magnitude = value_bits & F64Lanes::kMagnitudeMask;
  const int exponent = static_cast<int>(magnitude >> kMantissaBits) - F64Lanes::kBias;
  if (exponent >= format.MinExponent()) return EncodeWide(plans.above, value_bits, random);

  // |x| = significand * 2^-fraction_bits in units of the subnormals' spacing.
  // In the subnormal gap and just below, fraction_bits lies between 46 and 52.
  const int fraction_bits = kMantissaBits - (exponent - format.SubnormalExponent());
  const uint64_t low_ordinal = (uint64_t{1} << format.mantissa_bits) - 1;
  const uint64_t significand =
      (magnitude & ((uint64_t{1} << kMantissaBits) - 1)) | (uint64_t{1} << kMantissaBits);
  const bool below = fraction_bits > kMantissaBits ||
                     (significand >> fraction_bits) < low_ordinal ||
                     significand == (low_ordinal << fraction_bits);
  if (below) return EncodeWide(plans.below, value_bits, random);

  const uint64_t high = uint64_t{1} << (format.mantissa_bits + format.subnormal_shift);
  const bool negative = (value_bits >> 63) != 0;
  const bool up = RoundsToHigh(plan.rounding,
                               negative,
                               significand - (low_ordinal << fraction_bits),
                               Uint128{high - low_ordinal} << fraction_bits,
                               random);
  const uint32_t code = static_cast<uint32_t>(low_ordinal) + (up ? 1 : 0);
  return code | (negative ? format.SignBit() : 0);
}

}  // namespace scalar
}  // namespace numsim
