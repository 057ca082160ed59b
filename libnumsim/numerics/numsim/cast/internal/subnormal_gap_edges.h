// Conversion to and from formats with a gap between their subnormals and normals (bitsandbytes' map
// [bnb]), by way of the format without the gap. The subnormals of that format are
// 2^subnormal_shift times as large.
//
// Closing the gap maps |x| to a number whose code in the format without the gap is the code of |x|
// in the format with it. Up to the largest subnormal that number is |x| * 2^subnormal_shift. In the
// gap it is one of the ends, selected here by the rounding mode; the lower end is scaled like the
// other subnormals. From the smallest normal on it is |x|. The ends are values of the format, so no
// rounding mode changes them afterwards. Opening the gap scales decoded subnormals back.
//
// Example, bnb-e4m3: subnormals are multiples of 2^-11, and of 2^-9 without the gap. The gap lies
// between 7 * 2^-11 and 32 * 2^-11, and its middle is 19.5 * 2^-11. 5.3 * 2^-11 becomes 5.3 * 2^-9,
// which rounds to code 5. To nearest even, 19.4 * 2^-11 becomes 7 * 2^-9, code 7, and 19.5 * 2^-11
// becomes 2^-6, code 8.
#pragma once

#include <cstdint>

#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// True if subnormal_gap-inl.h serves the subnormal gap of the format: all intermediate numbers fit
// into 32-bit lanes, and float32 subnormals lie far below the format's values, as in
// ExponentRange::kNarrower.
constexpr bool SubnormalGapFitsLanes(const FormatSpec& format) {
  const int m = format.mantissa_bits, shift = format.subnormal_shift;
  return format.sign == Sign::kSignMagnitude && format.zero != Zero::kNone && m >= 1 && m <= 8 &&
         shift >= 1 && shift <= 5 && format.SubnormalExponent() - 34 > -126 &&
         format.MinExponent() <= 127;
}

// Return the format or plan without the subnormal gap. The plan keeps its ExponentRange: a range
// that holds for the finer subnormals also holds for the coarser ones.
constexpr FormatSpec WithoutSubnormalGap(FormatSpec format) {
  format.subnormal_shift = 0;
  return format;
}
constexpr EncodePlan WithoutSubnormalGap(EncodePlan plan) {
  plan.format.subnormal_shift = 0;
  return plan;
}

// The edges of a subnormal gap. Magnitudes are float32 bits.
struct SubnormalGapEdges {
  uint32_t low = 0;         // the largest subnormal
  uint32_t middle = 0;      // halfway between the largest subnormal and the smallest normal
  uint32_t high = 0;        // the smallest normal
  uint32_t raise = 0;       // adding this to the bits multiplies by 2^subnormal_shift
  uint32_t low_raised = 0;  // low * 2^subnormal_shift
  uint32_t units = 0;       // width of the gap in units of the subnormals' spacing

  SubnormalGapEdges() = default;
  // Requires SubnormalGapFitsLanes(format).
  explicit SubnormalGapEdges(const FormatSpec& format) {
    const int unit = format.SubnormalExponent();
    const uint32_t to_low = (uint32_t{1} << format.mantissa_bits) - 1;
    const uint32_t to_high = uint32_t{1} << (format.mantissa_bits + format.subnormal_shift);
    low = scalar::ExactF32Bits(to_low, unit);
    middle = scalar::ExactF32Bits(to_low + to_high, unit - 1);
    high = scalar::ExactF32Bits(to_high, unit);
    raise = static_cast<uint32_t>(format.subnormal_shift) << 23;
    low_raised = low + raise;
    units = to_high - to_low;
  }
};

}  // namespace numsim
