// Wide: a finite number of which the leading 256 bits are kept, for results of several operations
// that are rounded once at the end. Cutting bits is all that is ever done: what is kept is the floor
// of the exact magnitude, and floor(floor(x) / d) = floor(x / d), so an operation on what was kept
// gives what the same operation gives on the exact number.
#pragma once

#include <array>
#include <cstdint>

#include "numsim/rounding/unrounded.h"

namespace numsim::exact {

// The magnitude is limbs 2^exponent, lowest limb first, exact unless `more`; with `more` it is above
// that and below (limbs + 1) 2^exponent. The top bit is set, except in zero, which is never `more`.
struct Wide {
  bool negative = false;
  bool more = false;
  int exponent = 0;
  std::array<uint64_t, 4> limbs = {};

  bool IsZero() const { return limbs[3] == 0; }
};

// A number other than zero, m 2^e, that divides a result. Requires m < 2^48.
struct Divisor {
  uint64_t m = 1;
  int e = 0;
};

// Requires a finite number that is exact (not rounded to odd).
Wide WideOf(const Unrounded& x) noexcept;
// Return the number just above or below a magnitude other than zero, nearer to it than 256 bits tell.
Wide JustAbove(const Unrounded& x) noexcept;
Wide JustBelow(const Unrounded& x) noexcept;

// Exact. Requires exact operands of up to 128 bits.
Wide Product(const Wide& a, const Wide& b) noexcept;
// Requires exact operands, or that neither cancels more than a few bits of the other.
Wide Sum(const Wide& a, const Wide& b) noexcept;
Wide Quotient(const Wide& a, const Divisor& d) noexcept;
// Requires a >= 0.
Wide Root(const Wide& a) noexcept;
// Returns 1 / sqrt(m 2^e) / d. Requires 0 < m < 2^48 and d.m < 2^24.
Wide ReciprocalRoot(uint64_t m, int e, const Divisor& d) noexcept;

// Returns the number rounded to odd.
Unrounded Narrow(const Wide& x) noexcept;

}  // namespace numsim::exact
