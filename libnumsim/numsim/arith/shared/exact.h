// Exact operations on unrounded numbers, before any format is chosen. Special values by [IEEE754];
// arith.cc and everything with a compound result are made of these.
#pragma once

#include "numsim/rounding/flags.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::exact {

// An unrounded result and the flags (kInvalid, kDivideByZero) that making it raised. NaN results
// are positive. Operands must be exact: not themselves rounded to odd, of at most 62 bits.
struct Outcome {
  Unrounded value;
  Flags flags = 0;
};

// `zero_negative`: the sign of an exact zero that comes of addends of different signs.
Outcome Sum(const Unrounded& a, const Unrounded& b, bool zero_negative) noexcept;
// Requires significands whose product is below 2^63 to be exact; above it is rounded to odd.
Outcome Product(const Unrounded& a, const Unrounded& b) noexcept;
Outcome Quotient(const Unrounded& a, const Unrounded& b) noexcept;
Outcome Root(const Unrounded& a) noexcept;
// Requires significands below 2^30. The sign of a zero is not settled.
Outcome Remainder(const Unrounded& a, const Unrounded& b) noexcept;

Unrounded Negated(Unrounded a) noexcept;

}  // namespace numsim::exact
