// Exception flags of one rounded result: a returned value, never global state. The bits are those
// of Berkeley SoftFloat and TestFloat [TestFloat].
#pragma once

#include <cstdint>

namespace numsim {

using Flags = uint8_t;  // an OR of:

// The result differs from the exact value. This includes a zero that a format without zero
// represents by its smallest value.
inline constexpr Flags kInexact = 0x01;
// The result is tiny (see Tininess) and inexact. Never with kOverflow. Two's complement grids have
// no exponent and never underflow.
inline constexpr Flags kUnderflow = 0x02;
// The magnitude, rounded as if the exponent had no upper bound, exceeds the largest finite value;
// or the result is infinite and the format or the overflow policy does not give an infinity. Always
// with kInexact.
inline constexpr Flags kOverflow = 0x04;
// A finite number other than zero was divided by zero, or the logarithm of zero was taken.
inline constexpr Flags kDivideByZero = 0x08;
// No useful result exists: 0/0, inf - inf, 0 * inf, sqrt(-1), log(-1), a signalling NaN operand (a
// NaN code with the top mantissa bit clear in a Nan::kIeee format of at least two mantissa bits), a
// NaN result in a format without NaN, a negative result in an unsigned format. No other flag is
// raised with kInvalid.
inline constexpr Flags kInvalid = 0x10;

// The two definitions of a tiny result in [IEEE754] 7.5. kBeforeRounding: the exact magnitude is
// below the smallest normal number. kAfterRounding: the magnitude rounded as if the exponent had no
// lower bound is below it.
enum class Tininess : uint8_t { kAfterRounding, kBeforeRounding };

// A result and its flags.
struct Rounded {
  uint32_t code = 0;
  Flags flags = 0;

  friend bool operator==(const Rounded&, const Rounded&) = default;
};

}  // namespace numsim
