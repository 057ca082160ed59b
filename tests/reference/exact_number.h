// Exact results of arithmetic, before any rounding: a fraction of big integers,
// or the square root of one, with a power of two. No bit is ever cut; all that
// rounding asks is how such a number compares with a number of the target's
// lattice.
#pragma once

#include <cstdint>
#include <span>

#include "tests/reference/natural.h"
#include "tests/reference/oracle.h"

namespace oracle {

// Exception flags, an OR. Numbered as in TestFloat.
using Flags = uint8_t;
inline constexpr Flags kInexactFlag = 1;
inline constexpr Flags kUnderflowFlag = 2;
inline constexpr Flags kOverflowFlag = 4;
inline constexpr Flags kDivideByZeroFlag = 8;
inline constexpr Flags kInvalidFlag = 16;

// significand 2^exponent.
struct Dyadic {
  uint64_t significand = 0;
  int exponent = 0;
};
// Requires x >= 0, finite.
Dyadic ToDyadic(double x);

// When finite: numerator / denominator 2^exponent, or the square root of that.
struct ExactNumber {
  Real::Kind kind = Real::Kind::kFinite;
  bool negative = false;
  // A zero whose sign follows the rounding mode: a sum of opposites.
  bool sign_by_mode = false;
  bool root = false;
  Natural numerator;
  Natural denominator = 1;
  int64_t exponent = 0;
  // kInvalidFlag and kDivideByZeroFlag, as far as they do not depend on the
  // target.
  Flags flags = 0;

  bool IsNan() const { return kind == Real::Kind::kNan; }
  bool IsInfinite() const { return kind == Real::Kind::kInfinity; }
  bool IsZero() const { return kind == Real::Kind::kFinite && numerator.IsZero(); }
  // How the magnitude compares with y. Requires a finite number.
  int CompareWith(Dyadic y) const;
  // The magnitude, right to about 2^-50 of itself; 0 or infinity out of range.
  // For guesses only.
  double Approximate() const;
};

// The meaning of a code. The unused code of two's complement is its two's
// complement value. The flags of a signalling NaN are kInvalidFlag: a NaN of a
// format whose canonical NaN has a greater code.
ExactNumber ExactOf(const Grid& grid, uint32_t code);

// Operations by [IEEE754]. Operands are values of codes (or sums and products
// of such), neither roots nor fractions. NaN results are positive. Flags of the
// operands are carried over.
ExactNumber ExactSum(std::span<const ExactNumber> addends);
ExactNumber ExactProduct(const ExactNumber& a, const ExactNumber& b);
ExactNumber ExactQuotient(const ExactNumber& a, const ExactNumber& b);
ExactNumber ExactRoot(const ExactNumber& a);
ExactNumber ExactRemainder(const ExactNumber& a, const ExactNumber& b);
ExactNumber ExactScaled(const ExactNumber& a, int64_t n);
ExactNumber Negated(ExactNumber a);

}  // namespace oracle
