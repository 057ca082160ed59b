// Elementary functions as unrounded numbers, for the scalar functions and for tables of results.
#pragma once

#include "numsim/arith/elementary.h"
#include "numsim/arith/shared/exact.h"

namespace numsim::exact {

// Returns the value of the function, exact or rounded to odd, with the flags kInvalid and
// kDivideByZero. Where the result is above 2^256 or, other than zero, below 2^-183, another number of
// that kind may stand for it: every format rounds all of them alike, also by 32 random bits.
// Requires the exact value of a code.
Outcome Elementary(ElementaryFunction function, const Unrounded& x) noexcept;

}  // namespace numsim::exact
