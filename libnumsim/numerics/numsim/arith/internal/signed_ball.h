// Values of elementary functions as balls with a sign, from which the result is cut.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "numsim/arith/internal/ball.h"
#include "numsim/arith/internal/elementary_evaluation.h"

namespace numsim::ball {

template <int kLimbs>
struct Signed {
  bool negative = false;
  Ball<kLimbs> magnitude = {};
};

template <int kLimbs>
Ball<kLimbs> MagnitudeOf(const ElementaryArgument& x) {
  return Exactly<kLimbs>(x.m, x.e);
}

// Returns x / d rounded to odd, if the error bound leaves no doubt about the bits that are kept nor
// that others follow.
template <int kLimbs>
std::optional<Unrounded> ToOdd(const Signed<kLimbs>& value, const exact::Divisor& d) {
  const Ball<kLimbs> x = d.m == 1 ? value.magnitude : value.magnitude / d.m;
  constexpr int kCut = Ball<kLimbs>::kBits - Unrounded::kKeptBits;
  const int up = Ball<kLimbs>::kBits - x.bits + 1;  // the error is below (error + 1) 2^up
  if (x.bits == 0 || up + static_cast<int>(std::bit_width(x.error + 1)) > kCut) return std::nullopt;
  std::array<uint64_t, kLimbs> error = {x.error + 1}, low = x.limbs, high = x.limbs;
  error = ShiftedUp(error, up);
  SubtractFrom(low, error);
  if (AddTo(high, error)) return std::nullopt;
  const uint64_t kept = ShiftedDown(low, kCut)[0];
  if (kept != ShiftedDown(high, kCut)[0]) return std::nullopt;
  return Unrounded{NumberKind::kFinite, value.negative, x.exponent - d.e + kCut - 1, kept << 1 | 1};
}

}  // namespace numsim::ball
