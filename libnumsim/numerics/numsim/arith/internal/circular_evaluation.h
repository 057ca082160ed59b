// Trigonometric functions and their inverses, also in units of pi, in balls.
#pragma once

#include <bit>
#include <cstdint>

#include "numsim/arith/internal/ball_circle.h"
#include "numsim/arith/internal/signed_ball.h"

namespace numsim::ball {

// An angle of `quadrant` quarters of a turn and a rest that is `rest`, or pi / 2 - `rest` if
// `complement`. The rest is at most about pi / 4.
template <int kLimbs>
struct Turn {
  int quadrant = 0;
  bool complement = false;
  Ball<kLimbs> rest = {};
};

// Returns x 2 / pi as quarters of a turn. A fraction above one half is taken from the next quarter.
template <int kLimbs>
Turn<kLimbs> TurnOfRadians(const ElementaryArgument& x) {
  const Ball<kLimbs> magnitude = MagnitudeOf<kLimbs>(x);
  if (x.IsBelow(-1)) return {0, false, magnitude};
  Ball<kLimbs> y = magnitude * TwoOverPi<kLimbs>();
  const int whole_bits = y.Binade() + 1;  // bits before the binary point
  int quadrant = 0;
  if (whole_bits > 0) {
    if (whole_bits >= Ball<kLimbs>::kBits - 1) return {0, false, WithError(y, 0, 0)};
    quadrant = static_cast<int>(ShiftedDown(y.limbs, Ball<kLimbs>::kBits - whole_bits)[0] & 3);
    y.limbs = ShiftedUp(y.limbs, whole_bits);
    const int zeros = LeadingZeros(y.limbs);
    if (zeros >= Ball<kLimbs>::kBits - 1) return {0, false, WithError(y, 0, 0)};
    y.limbs = ShiftedUp(y.limbs, zeros);
    y.exponent -= whole_bits + zeros;
    y = WithError(y, y.bits - whole_bits - zeros - 1, y.error + 2);
  }
  const bool complement = y.Binade() >= -1;
  if (complement) y = Exactly<kLimbs>(1) - y;
  return {quadrant, complement, y * Pi<kLimbs>(-1)};
}

// Returns 2x as quarters of a turn, for x in units of pi. Requires that 2x is no integer.
template <int kLimbs>
Turn<kLimbs> TurnOfHalves(const ElementaryArgument& x) {
  const int k = -(x.e + 1);  // 2x = m 2^-k
  if (k > 60) return {0, false, Exactly<kLimbs>(x.m, x.e + 1) * Pi<kLimbs>(-1)};
  const uint64_t one = uint64_t{1} << k, fraction = x.m % one;
  const bool complement = 2 * fraction > one;
  const Ball<kLimbs> rest = Exactly<kLimbs>(complement ? one - fraction : fraction, -k);
  return {static_cast<int>(x.m / one & 3), complement, rest * Pi<kLimbs>(-1)};
}

enum class Ratio : uint8_t { kSin, kCos, kTan };

template <int kLimbs>
Signed<kLimbs> RatioOf(Ratio ratio, const Turn<kLimbs>& turn, bool negative) {
  const bool odd = (turn.quadrant & 1) != 0;
  const auto sine = [&](bool of_rest) { return SinOrCos(turn.rest, of_rest != turn.complement); };
  switch (ratio) {
    case Ratio::kSin:  // s, c, -s, -c
      return {negative != (turn.quadrant >= 2), sine(!odd)};
    case Ratio::kCos:  // c, -s, -c, s
      return {turn.quadrant == 1 || turn.quadrant == 2, sine(odd)};
    case Ratio::kTan:
      break;
  }
  return {negative != odd, sine(!odd) / sine(odd)};
}

// Returns 1 - x^2.
template <int kLimbs>
Ball<kLimbs> OneMinusSquare(const Ball<kLimbs>& x) {
  const Ball<kLimbs> one = Exactly<kLimbs>(1);
  return (one - x) * (one + x);
}

// Returns the angle whose sine is x, for 0 < |x| < 1.
template <int kLimbs>
Signed<kLimbs> ArcSin(const ElementaryArgument& x) {
  const Ball<kLimbs> magnitude = MagnitudeOf<kLimbs>(x);
  return {x.negative, Atan(magnitude / Root(OneMinusSquare(magnitude)))};
}

template <int kLimbs>
Signed<kLimbs> ArcCos(const ElementaryArgument& x) {
  const Ball<kLimbs> magnitude = MagnitudeOf<kLimbs>(x);
  const Ball<kLimbs> angle = Atan(Root(OneMinusSquare(magnitude)) / magnitude);
  return {false, x.negative ? Pi<kLimbs>() - angle : angle};
}

template <int kLimbs>
Signed<kLimbs> ArcTan(const ElementaryArgument& x) {
  return {x.negative, Atan(MagnitudeOf<kLimbs>(x))};
}

template <int kLimbs>
Signed<kLimbs> AngleOf(const ElementaryArgument& y, const ElementaryArgument& x) {
  const Ball<kLimbs> angle = Atan(MagnitudeOf<kLimbs>(y) / MagnitudeOf<kLimbs>(x));
  return {y.negative, x.negative ? Pi<kLimbs>() - angle : angle};
}

template <int kLimbs>
Signed<kLimbs> InUnitsOfPi(const Signed<kLimbs>& angle) {
  return {angle.negative, angle.magnitude / Pi<kLimbs>()};
}

}  // namespace numsim::ball
