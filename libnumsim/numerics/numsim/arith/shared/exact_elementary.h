// Elementary functions as unrounded numbers, for the scalar functions, for tables of results and for
// the operations of [P3109], in which a scale divides the exact result.
#pragma once

#include "numsim/arith/elementary.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/arith/shared/wide.h"

namespace numsim::exact {

// Return the value divided by d, exact or rounded to odd, with the flags kInvalid and kDivideByZero
// (and kInexact never). Where the result is above 2^256 or, other than zero, below 2^-183, another
// number of that kind may stand for it: every format rounds all of them alike, also by 32 random bits.
// d.m < 2^24, and d is from 2^-150 to 2^129.

// Requires an exact value of up to 48 bits, 24 for kGelu and kGeluTanh, with 2^-300 <= |x| < 2^256.
Outcome Elementary(ElementaryFunction function, const Unrounded& x, const Divisor& d = {}) noexcept;

// The angle of the point (x, y) from the positive x axis, from -pi to pi, in units of pi if `of_pi`
// [IEEE754] 9.2: atan2(+-0, x) is +-0 for x = +0 and x > 0 and +-pi for x = -0 and x < 0, and infinite
// operands give the limits along the diagonals, such as pi / 4. Requires exact values of up to 48 bits.
Outcome Angle(const Unrounded& y, const Unrounded& x, bool of_pi, const Divisor& d = {}) noexcept;

// sqrt(x^2 + y^2). An infinite operand gives +infinity even beside a NaN [IEEE754]. Requires exact
// values of up to 48 bits.
Outcome Hypotenuse(const Unrounded& x, const Unrounded& y, const Divisor& d = {}) noexcept;

}  // namespace numsim::exact
