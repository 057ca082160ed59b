// The magnitude from which an element counts as an overflow.
#pragma once

#include <cmath>

#include "numsim/formats/decode.h"

namespace numsim {

// Returns the midpoint between the largest finite value and the value that would follow it.
inline double OverflowThreshold(const FormatSpec& format) {
  const Dyadic max = MagnitudeValue(format, format.MaxFiniteCode());
  return std::ldexp(static_cast<double>(max.significand) + 0.5, max.exponent);
}

}  // namespace numsim
