// Exception flags of one rounded result: a returned value, never global state. Bits as in Berkeley
// SoftFloat and TestFloat [TestFloat].
#pragma once

#include <cstdint>

namespace numsim {

using Flags = uint8_t;  // an OR of:

// The result differs from the exact value, also where a format without zero delivers a zero as its
// smallest value.
inline constexpr Flags kInexact = 0x01;
// Tiny (see Tininess) and inexact; never with kOverflow. Two's complement grids have no exponent
// and never underflow.
inline constexpr Flags kUnderflow = 0x02;
// Rounded as if the exponent had no upper bound, the magnitude exceeds the largest finite value; or
// the result is infinite and the format or the policy does not deliver an infinity. Always with
// kInexact.
inline constexpr Flags kOverflow = 0x04;
// A finite number other than zero divided by zero.
inline constexpr Flags kDivideByZero = 0x08;
// No useful result exists: 0/0, inf - inf, 0 * inf, sqrt(-1), a signalling NaN (NaN codes of
// Nan::kIeee formats with the top mantissa bit clear, of at least two mantissa bits), a NaN for a
// format without NaN, a negative number for an unsigned format. Nothing else is raised with it.
inline constexpr Flags kInvalid = 0x10;

// When a result counts as tiny [IEEE754] 7.5: its exact value lies below the smallest normal
// number, or its value rounded as if the exponent had no lower bound does.
enum class Tininess : uint8_t { kAfterRounding, kBeforeRounding };

// A result and its flags.
struct Rounded {
  uint32_t code = 0;
  Flags flags = 0;

  friend bool operator==(const Rounded&, const Rounded&) = default;
};

}  // namespace numsim
