// The order of exact numbers, for comparisons and extrema.
#pragma once

#include "numsim/arith/arith.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

// Returns the relation of two exact numbers as Compare() of arith.h.
Relation CompareExact(const Unrounded& a, const Unrounded& b) noexcept;
// Returns the operand that an extremum chooses, or NaN.
Unrounded ChosenOf(Extremum extremum, const Unrounded& a, const Unrounded& b) noexcept;

}  // namespace numsim
