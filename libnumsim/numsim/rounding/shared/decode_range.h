// Which formats the decoding rule serves.
#pragma once

#include "numsim/formats/format_spec.h"

namespace numsim {

// Whether DecodeWord serves that format.
constexpr bool DecodesInLanes(const FormatSpec& format) {
  return format.IsSigned() && format.subnormal_shift == 0 && format.zero != Zero::kNone &&
         format.Bits() < 32 && (format.MinExponent() == -126 || format.SubnormalExponent() >= -126);
}

// Whether a code of that format, its fields moved to those of binary16, is a binary16 number worth
// the value times 2^(bias - 15), subnormals included.
constexpr bool FitsBinary16Fields(const FormatSpec& format) {
  const uint32_t top_field = format.MaxFiniteCode() >> format.mantissa_bits;
  return DecodesInLanes(format) && format.sign == Sign::kSignMagnitude &&
         format.exponent_bits <= 5 && format.mantissa_bits <= 10 && top_field < 31 &&
         format.SubnormalExponent() >= -126 && format.bias > -64 && format.bias < 64;
}

}  // namespace numsim
