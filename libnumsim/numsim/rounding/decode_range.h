// Which formats the decoding rule serves.
#pragma once

#include "numsim/formats/format_spec.h"

namespace numsim {

// Whether DecodeWord serves that format.
constexpr bool DecodesInLanes(const FormatSpec& format) {
  return format.IsSigned() && format.subnormal_shift == 0 && format.zero != Zero::kNone &&
         format.Bits() < 32 && (format.MinExponent() == -126 || format.SubnormalExponent() >= -126);
}

}  // namespace numsim
