// Exact operations on unrounded numbers, independent of any format. Special values are treated as
// in [IEEE754]. The operations of arith.h and the accumulation modes are built on these functions.
#pragma once

#include "numsim/rounding/flags.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::exact {

// An unrounded result and the flags (kInvalid, kDivideByZero) that its computation raised. NaN
// results are positive. Operands must be exact (not themselves rounded to odd) and have at most 62
// bits.
struct Outcome {
  Unrounded value;
  Flags flags = 0;
};

// `zero_negative` is the sign of an exact zero sum of addends of different signs.
Outcome Sum(const Unrounded& a, const Unrounded& b, bool zero_negative) noexcept;
// Exact if the product of the significands is below 2^63, otherwise rounded to odd.
Outcome Product(const Unrounded& a, const Unrounded& b) noexcept;
Outcome Quotient(const Unrounded& a, const Unrounded& b) noexcept;
Outcome Root(const Unrounded& a) noexcept;
// Requires significands below 2^30. The sign of a zero result is unspecified.
Outcome Remainder(const Unrounded& a, const Unrounded& b) noexcept;

Unrounded Negated(Unrounded a) noexcept;

}  // namespace numsim::exact
