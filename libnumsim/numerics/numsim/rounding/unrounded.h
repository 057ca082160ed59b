// Unrounded results and their rounding to a format. All arithmetic rounds through EncodeUnrounded.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/flags.h"

namespace numsim {

// Whether a number is finite, an infinity or a NaN.
enum class NumberKind : uint8_t { kFinite, kInfinity, kNan };

// (-1)^negative * significand * 2^exponent, infinity or NaN.
// The significand is exact or rounded to odd: if bits were cut, at least kKeptBits are left and the
// lowest is set. Rounding it to any format of up to 24 significant bits, to nearest, directed or
// stochastically with up to 32 random bits, gives the same result as rounding the exact value
// [Boldo].
struct Unrounded {
  NumberKind kind = NumberKind::kFinite;
  bool negative = false;
  int exponent = 0;
  uint64_t significand = 0;  // below 2^63; 0 for zero

  // The number of significant bits that are kept at least.
  static constexpr int kKeptBits = 62;
};

// Returns the exact value of a code. A NaN keeps its sign if the format has NaNs of both signs. The
// unused code of a symmetric two's complement grid gives its two's complement value (-128 for int8).
// Requires code <= format.CodeMask().
Unrounded ExactValue(const FormatSpec& format, uint32_t code) noexcept;

// Rounds `x` once to the plan's format, as EncodeF32 rounds a float32. Returns the code and the
// flags kInexact, kUnderflow (by plan.tininess), kOverflow, and kInvalid for values that the format
// cannot represent (a NaN without NaN codes, a negative number without a sign).
// `random` is as in EncodeF32. Requires |exponent| < 2^20.
Rounded EncodeUnrounded(const EncodePlan& plan, const Unrounded& x, uint32_t random = 0) noexcept;

}  // namespace numsim
