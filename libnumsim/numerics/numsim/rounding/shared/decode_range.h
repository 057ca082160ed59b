// The formats that the decoding rule (decode_rule.inc) serves.
#pragma once

#include "numsim/formats/format_spec.h"

namespace numsim {

// Returns true if DecodeWord of decode_rule.inc serves the format.
constexpr bool DecodesInLanes(const FormatSpec& format) {
  return format.IsSigned() && !format.IsTable() && format.subnormal_shift == 0 &&
         format.zero != Zero::kNone && format.Bits() < 32 &&
         (format.MinExponent() == -126 || format.SubnormalExponent() >= -126);
}

// Returns true if moving the fields of a code to those of binary16 always gives the binary16 number
// value * 2^(bias - 15), including subnormals.
constexpr bool FitsBinary16Fields(const FormatSpec& format) {
  const uint32_t top_field = format.MaxFiniteCode() >> format.mantissa_bits;
  return DecodesInLanes(format) && !format.flush_subnormals &&
         format.sign == Sign::kSignMagnitude && format.exponent_bits <= 5 &&
         format.mantissa_bits <= 10 && top_field < 31 && format.SubnormalExponent() >= -126 &&
         format.bias > -64 && format.bias < 64;
}

}  // namespace numsim
