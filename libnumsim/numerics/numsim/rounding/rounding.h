// Rounding modes and overflow policies, the parameters of every conversion.
// docs/rounding.md has worked bit examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace numsim {

// kNearestEven and so on: one enumerator per row of rounding_modes.inc, which defines each mode.
enum class RoundingMode : uint8_t {
#define NUMSIM_ROUNDING_MODE(enumerator, value, ...) enumerator = value,
#include "numsim/rounding/rounding_modes.inc"
#undef NUMSIM_ROUNDING_MODE
};

// Variants of stochastic rounding with N random bits R, 0 <= R < 2^N. nu in [0, 1) is the discarded
// fraction: the distance from the neighbour toward zero, in units of the distance between the two
// neighbours. The magnitude is rounded away from zero if and only if
//   A: floor(nu 2^N) + R >= 2^N                 P(away) = floor(nu 2^N) / 2^N
//   B: floor(nu 2^(N+1)) + 2R + 1 >= 2^(N+1)    P(away) = floor(nu 2^N + 1/2) / 2^N
//   C: rint(nu 2^N) + R >= 2^N                  P(away) = rint(nu 2^N) / 2^N, ties to even
// Source: [P3109] v4.0, StochasticA, B, C.
enum class StochasticVariant : uint8_t { kA, kB, kC };

// A rounding: its mode, and how a stochastic one uses random bits.
struct Rounding {
  RoundingMode mode = RoundingMode::kNearestEven;
  StochasticVariant variant = StochasticVariant::kA;  // read only under kStochastic
  int random_bits = 32;                               // N, 1..32; read only under kStochastic

  friend bool operator==(const Rounding&, const Rounding&) = default;
};

// The overflow policy: the treatment of infinite inputs and of finite overflows, results whose
// magnitude, rounded as if the exponent had no upper bound, exceeds the largest finite value.
//
// A finite overflow under kNonsaturate becomes infinity, NaN or the largest finite value, as the
// format's overflow_to says. In a mode that never rounds away from zero on that side (rtz; odd; rtp
// for negative, rtn for positive numbers) it becomes the largest finite value, as in [IEEE754] 7.4.
//
// Under kNonsaturate and kPropagate, an infinity becomes the format's infinity. In a format without
// infinity it becomes NaN or the largest finite value, as overflow_to says.
enum class Overflow : uint8_t {
  kNonsaturate,  // finite overflow and infinity as above
  kSaturate,     // finite overflow and infinity -> the largest finite value
  kPropagate,    // finite overflow -> the largest finite value; infinity as above
};

// Negative inputs in an unsigned format. A number whose rounded magnitude is zero becomes zero. Any
// other negative number becomes NaN under kNonsaturate (the smallest value if the format has no
// NaN) and the smallest value under kSaturate and kPropagate. In a format without zero (e8m0fnu)
// this applies to every negative number. Minus infinity is treated like other negative numbers,
// except that it also becomes NaN under kPropagate.

// Return the names: for modes, those of rounding_modes.inc; for variants, a, b, c; for overflow
// policies, nonsaturate, saturate, propagate.
std::string_view ToString(RoundingMode mode);
std::string_view ToString(StochasticVariant variant);
std::string_view ToString(Overflow overflow);

// The inverses of ToString. Throw Error that names the text and lists the valid names.
RoundingMode ParseRoundingMode(std::string_view text);
StochasticVariant ParseStochasticVariant(std::string_view text);
Overflow ParseOverflow(std::string_view text);

}  // namespace numsim
