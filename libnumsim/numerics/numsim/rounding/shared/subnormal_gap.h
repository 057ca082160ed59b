// Rounding in formats with a subnormal gap, a gap between the subnormals and the normals
// (bitsandbytes' map [bnb]).
#pragma once

#include <cstdint>

#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/shared/encode_scalar.h"

namespace numsim {

// The plans for numbers on either side of the subnormal gap. The format of `below` has no gap, and
// its subnormals have the spacing of the original's: both formats have the same codes below the
// gap. The format of `above` has no gap, and its normals are those of the original.
struct SubnormalGapPlans {
  EncodePlan below, above;
};
SubnormalGapPlans MakeSubnormalGapPlans(const EncodePlan& plan) noexcept;

// Returns the code of a float64 as EncodeF64 does. Requires plan.format.subnormal_shift > 0. In the
// subnormal gap the discarded fraction is (|x| - low) / (high - low). Its denominator is not a
// power of two, so the fraction is compared as an exact quotient of integers.
uint32_t EncodeWithSubnormalGap(const EncodePlan& plan,
                                uint64_t value_bits,
                                uint32_t random) noexcept;

namespace scalar {

// Returns true if the magnitude low + numerator/denominator * (high - low) is rounded to `high`.
// The code of `high` is even (the first normal); that of `low` is odd. Products are below
// 2^54 * 2^33 and need 87 bits.
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

// Does the same as EncodeWithSubnormalGap above with given plans, on host or device.
NUMSIM_HOST_DEVICE inline uint32_t EncodeWithSubnormalGap(const EncodePlan& plan,
                                                          const SubnormalGapPlans& plans,
                                                          uint64_t value_bits,
                                                          uint32_t random) {
  constexpr int kMantissaBits = F64Lanes::kMantissaBits;
  const FormatSpec& format = plan.format;
  const uint64_t magnitude = value_bits & F64Lanes::kMagnitudeMask;
  const int exponent = static_cast<int>(magnitude >> kMantissaBits) - F64Lanes::kBias;
  if (exponent >= format.MinExponent()) return EncodeWide(plans.above, value_bits, random);

  // |x| = significand * 2^-fraction_bits in units of the spacing of the subnormals.
  // In the subnormal gap and just below it, fraction_bits is between 46 and 52.
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
