// The values of a format as float32 arithmetic sees them: rounding to them without codes.
#pragma once

#include <optional>

#include "numsim/rounding/encode_plan.h"

namespace numsim {

// Rounds a float32 to the nearest value, ties to even codes, saturating: above min_normal by
// integer arithmetic on the bits, below by adding and subtracting `shift`.
struct NearestGrid {
  int cut = 0;                // mantissa bits of float32 that the format lacks: 2 .. 22
  float min_normal = 0;       // the least magnitude of which the format keeps all its mantissa bits
  float shift = 0;            // 1.5 * 2^23 times the spacing below that
  float half_spacing = 0;     // half of that spacing
  float max = 0;              // the largest value
  bool negative_zero = true;  // whether there is one
};

// Empty where the plan does not round to nearest even with saturation, or the format is unsigned,
// has a subnormal gap, no mantissa bits (where even codes are even exponents), more than 21, or a range that
// float32's normal numbers do not cover.
std::optional<NearestGrid> MakeNearestGrid(const EncodePlan& plan) noexcept;

}  // namespace numsim
