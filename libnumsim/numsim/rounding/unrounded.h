// Exact results on their way to a format: the funnel through which all arithmetic goes.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/flags.h"

namespace numsim {

enum class NumberKind : uint8_t { kFinite, kInfinity, kNan };

// (-1)^negative * significand * 2^exponent, infinity or NaN.
// The significand is exact or rounded to odd: where bits were cut, at least kKeptBits are left and
// the lowest is set. Rounding that to any format of up to 24 significant bits, to nearest, directed
// or stochastically with up to 32 random bits, equals rounding the exact value [Boldo].
struct Unrounded {
  NumberKind kind = NumberKind::kFinite;
  bool negative = false;
  int exponent = 0;
  uint64_t significand = 0;  // below 2^63; 0 for zero

  static constexpr int kKeptBits = 62;
};

// The exact value of a code. A NaN keeps its sign where the format has NaNs of both signs. The
// unused code of a two's complement grid is its two's complement value (-128 for int8).
// Requires code <= format.CodeMask().
Unrounded ExactValue(const FormatSpec& format, uint32_t code) noexcept;

// Rounds `x` once to the plan's format, as EncodeF32 would a float32 of that value; sets kInexact,
// kUnderflow (by plan.tininess), kOverflow, and kInvalid for what the format cannot hold (a NaN
// without NaN codes, a negative number without sign).
// `random` as in EncodeF32. Requires |exponent| < 2^20.
Rounded EncodeUnrounded(const EncodePlan& plan, const Unrounded& x, uint32_t random = 0) noexcept;

}  // namespace numsim
