// Rounding of float32 numbers to the values of a format in float32 arithmetic, without codes.
#pragma once

#include <optional>

#include "numsim/rounding/encode_plan.h"

namespace numsim {

// The constants that round a float32 to the nearest value of a format, ties to even codes,
// saturating. From min_normal on, the rounding is integer arithmetic on the bits; below, it adds
// and subtracts `shift`.
struct NearestGrid {
  int cut = 0;                // mantissa bits of float32 that the format lacks: 2 .. 22
  float min_normal = 0;       // the smallest normal value
  float shift = 0;            // 1.5 * 2^23 times the spacing of the values below min_normal
  float half_spacing = 0;     // half of that spacing
  float max = 0;              // the largest value
  bool negative_zero = true;  // the format has a negative zero
};

// Returns the grid of the plan's format, or nothing if there is none. The plan must round to
// nearest even with saturation. The format must be signed and have a zero, no subnormal gap, 1 to
// 21 mantissa bits (without any, even codes are even exponents), and a range of normal values
// within that of float32.
std::optional<NearestGrid> MakeNearestGrid(const EncodePlan& plan) noexcept;

}  // namespace numsim
