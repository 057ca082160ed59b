// Elementary functions in arithmetic of a chosen number of bits, where no bound and no identity gives
// the result.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "numsim/arith/elementary.h"
#include "numsim/arith/shared/wide.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

// A finite operand other than zero: x = (-1)^negative m 2^e. m has up to 48 bits, for kGelu and
// kGeluTanh up to 24.
struct ElementaryArgument {
  bool negative;
  uint64_t m;
  int e;

  int Binade() const { return e + static_cast<int>(std::bit_width(m)) - 1; }
  bool IsBelow(int power) const { return Binade() < power; }   // |x| < 2^power
  bool IsAtLeast(int power) const { return !IsBelow(power); }  // |x| >= 2^power
};

// Numbers of 64 times so many bits are used one after another, until one decides.
inline constexpr int kElementaryLimbs[] = {2, 4, 8};

// Return the value divided by d and rounded to odd, or nothing if numbers of 64 * limbs bits leave a
// doubt about one of the bits that are kept. Require a number of kElementaryLimbs and a result with
// infinitely many bits.

// function(x) / d. Requires an x of the function's domain. Requires |x| < 2^9 for functions that grow
// or fall exponentially and for kSoftplus; |x| < 2^6 for kTanh; |x| < 2^4 for kGelu and kGeluTanh;
// and |x| < 2^256. kRsqrt is not one of them.
std::optional<Unrounded> EvaluateElementary(ElementaryFunction function,
                                            const ElementaryArgument& x,
                                            int limbs,
                                            const exact::Divisor& d = {}) noexcept;

// pi 2^n / d, with a sign.
std::optional<Unrounded> EvaluatePi(bool negative,
                                    int n,
                                    int limbs,
                                    const exact::Divisor& d = {}) noexcept;

// The angle of the point (x, y), in units of pi if `of_pi`, divided by d. Requires |y| != |x| if
// `of_pi`.
std::optional<Unrounded> EvaluateAngle(const ElementaryArgument& y,
                                       const ElementaryArgument& x,
                                       bool of_pi,
                                       int limbs,
                                       const exact::Divisor& d = {}) noexcept;

}  // namespace numsim
