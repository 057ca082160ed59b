// Formats with a subnormal gap between their subnormals and normals (bitsandbytes' map [bnb]) by way of the
// format without it, whose subnormals are 2^subnormal_shift times as large.
//
// Closing the subnormal gap moves |x| to a number that the format without the subnormal gap gives the code of |x|.
// Below the largest subnormal that is |x| * 2^subnormal_shift. In the subnormal gap it is one of the ends,
// decided here, the lower one moved like the rest. From the smallest normal on it is |x|.
// Ends are values, so no rounding mode moves them on. Opening moves decoded subnormals back.
// Example, bnb-e4m3: subnormals are multiples of 2^-11, 2^-9 without the subnormal gap. It lies between
// 7 * 2^-11 and 32 * 2^-11, its middle is 19.5 * 2^-11. 5.3 * 2^-11 becomes 5.3 * 2^-9, which
// rounds to code 5; 19.4 * 2^-11 becomes 7 * 2^-9, code 7; 19.5 * 2^-11 becomes 2^-6, code 8.
#pragma once

#include <cstdint>

#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// Whether subnormal_gap-inl.h serves that format's subnormal gap: all that it computes with fits into 32-bit lanes,
// and float32 subnormals are far below the format's values, as in ExponentRange::kNarrower.
constexpr bool SubnormalGapFitsLanes(const FormatSpec& format) {
  const int m = format.mantissa_bits, shift = format.subnormal_shift;
  return format.sign == Sign::kSignMagnitude && format.zero != Zero::kNone && m >= 1 && m <= 8 &&
         shift >= 1 && shift <= 5 && format.SubnormalExponent() - 34 > -126 &&
         format.MinExponent() <= 127;
}

// The same without the subnormal gap. A plan keeps its ExponentRange: that of the finer subnormals holds for
// the coarser ones.
constexpr FormatSpec WithoutSubnormalGap(FormatSpec format) {
  format.subnormal_shift = 0;
  return format;
}
constexpr EncodePlan WithoutSubnormalGap(EncodePlan plan) {
  plan.format.subnormal_shift = 0;
  return plan;
}

// Magnitudes as float32 bits.
struct SubnormalGapEdges {
  uint32_t low = 0;         // the largest subnormal
  uint32_t middle = 0;      // halfway to the smallest normal
  uint32_t high = 0;        // the smallest normal
  uint32_t raise = 0;       // added to bits: times 2^subnormal_shift
  uint32_t low_raised = 0;  // low moved up
  uint32_t units = 0;       // width of the subnormal gap in spacings of the subnormals

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
