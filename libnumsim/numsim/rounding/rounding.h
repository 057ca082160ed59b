// Rounding modes and overflow policies: the vocabulary of every conversion.
// docs/rounding.md has worked bit examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace numsim {

// kNearestEven and so on: one per row of rounding_modes.inc, which says what each does.
enum class RoundingMode : uint8_t {
#define NUMSIM_ROUNDING_MODE(enumerator, value, ...) enumerator = value,
#include "numsim/rounding/rounding_modes.inc"
#undef NUMSIM_ROUNDING_MODE
};

// Stochastic rounding with N random bits R, 0 <= R < 2^N. nu in [0, 1) is the discarded fraction:
// the distance from the neighbour toward zero in units of the distance between both neighbours.
// The magnitude is rounded away from zero exactly when
//   A: floor(nu 2^N) + R >= 2^N                 P(away) = floor(nu 2^N) / 2^N
//   B: floor(nu 2^(N+1)) + 2R + 1 >= 2^(N+1)    P(away) = floor(nu 2^N + 1/2) / 2^N
//   C: rint(nu 2^N) + R >= 2^N                  P(away) = rint(nu 2^N) / 2^N, ties to even
// Source: [P3109] v4.0, StochasticA, B, C.
enum class StochasticVariant : uint8_t { kA, kB, kC };

struct Rounding {
  RoundingMode mode = RoundingMode::kNearestEven;
  StochasticVariant variant = StochasticVariant::kA;  // read only under kStochastic
  int random_bits = 32;                               // N, 1..32; read only under kStochastic

  friend bool operator==(const Rounding&, const Rounding&) = default;
};

// What becomes of a result whose magnitude, rounded as if the exponent had no upper bound, exceeds
// the largest finite value; and of infinite inputs.
//
// A finite overflow under kNonsaturate becomes infinity, NaN or the largest value, as the format's
// overflow_to says; but the largest finite value in a mode that never rounds away from zero on that
// side (rtz; odd; rtp for negative, rtn for positive numbers), as in [IEEE754] 7.4.
enum class Overflow : uint8_t {
  kNonsaturate,  // finite overflow as above; infinity -> infinity, else NaN, else the largest value
  kSaturate,     // finite overflow and infinity -> the largest finite value
  kPropagate,    // finite overflow -> the largest finite value; infinity as under kNonsaturate
};

// Signs that a format cannot hold. A negative number whose rounded magnitude is not zero becomes,
// in an unsigned format, NaN under kNonsaturate (the smallest value if the format has no NaN) and
// the smallest value under kSaturate and kPropagate; one that rounds to zero becomes zero. A format
// without zero (e8m0fnu) holds no negative number at all. Minus infinity becomes NaN under
// kPropagate too.

// Names: those of rounding_modes.inc; a b c; nonsaturate saturate propagate.
std::string_view ToString(RoundingMode mode);
std::string_view ToString(StochasticVariant variant);
std::string_view ToString(Overflow overflow);

// Inverse of Name. Throws Error that names the value and lists the valid ones.
RoundingMode ParseRoundingMode(std::string_view text);
StochasticVariant ParseStochasticVariant(std::string_view text);
Overflow ParseOverflow(std::string_view text);

}  // namespace numsim
