// The magnitude from which an element counts as an overflow.
#pragma once

#include <cmath>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/value_table.h"

namespace numsim {

// Returns the midpoint between the largest finite value and the value that would follow it. In a table
// of values that is as far from the largest magnitude as the value before it.
inline double OverflowThreshold(const FormatSpec& format) {
  if (format.IsTable()) {
    const std::vector<float>& values = TableOf(format).values;
    const bool positive = std::abs(values.back()) >= std::abs(values.front());
    const float end = positive ? values.back() : values.front();
    const float beside = positive ? values[values.size() - 2] : values[1];
    return std::abs(1.5 * static_cast<double>(end) - 0.5 * static_cast<double>(beside));
  }
  const Dyadic max = MagnitudeValue(format, format.MaxFiniteCode());
  return std::ldexp(static_cast<double>(max.significand) + 0.5, max.exponent);
}

}  // namespace numsim
