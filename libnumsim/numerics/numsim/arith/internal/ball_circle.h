// Balls for the trigonometric and hyperbolic functions and their inverses: square roots, inverse
// tangents, logarithms of balls, sines and cosines.
#pragma once

#include <array>
#include <cstdint>

#include "numsim/arith/internal/ball_functions.h"

namespace numsim::ball {

// The leading 512 bits of pi / 4 and of 2 / pi, highest limb first.
inline constexpr std::array<uint64_t, 8> kQuarterPiLimbs = {0xC90FDAA22168C234,
                                                            0xC4C6628B80DC1CD1,
                                                            0x29024E088A67CC74,
                                                            0x020BBEA63B139B22,
                                                            0x514A08798E3404DD,
                                                            0xEF9519B3CD3A431B,
                                                            0x302B0A6DF25F1437,
                                                            0x4FE1356D6D51C245};
inline constexpr std::array<uint64_t, 8> kTwoOverPiLimbs = {0xA2F9836E4E441529,
                                                            0xFC2757D1F534DDC0,
                                                            0xDB6295993C439041,
                                                            0xFE5163ABDEBBC561,
                                                            0xB7246E3A424DD2E0,
                                                            0x06492EEA09D1921C,
                                                            0xFE1DEB1CB129A73E,
                                                            0xE88235F52EBB4484};

// Returns pi 2^n.
template <int kLimbs>
Ball<kLimbs> Pi(int n = 0) {
  return Constant<kLimbs>(kQuarterPiLimbs, n + 2);
}
template <int kLimbs>
Ball<kLimbs> TwoOverPi() {
  return Constant<kLimbs>(kTwoOverPiLimbs, 0);
}

// By the integer square root of s 2^kBits, or of half of it to leave an even exponent, bit by bit.
template <int kLimbs>
Ball<kLimbs> Root(const Ball<kLimbs>& a) {
  using Limbs = std::array<uint64_t, kLimbs + 1>;
  constexpr int kBits = Ball<kLimbs>::kBits;
  const bool odd = (a.exponent & 1) != 0;
  Limbs rest = {}, root = {};
  for (int i = 0; i < kBits; ++i) {
    // Bits 2i and 2i + 1 of the radicand, from the top: those of s, shifted down by one if `odd`.
    const auto bit = [&](int from_top) -> uint64_t {
      const int position = kBits - 1 - (from_top - (odd ? 1 : 0));
      if (position < 0 || position >= kBits) return 0;
      return a.limbs[static_cast<size_t>(position / 64)] >> (position % 64) & 1;
    };
    rest = ShiftedUp(rest, 2);
    rest[0] |= bit(2 * i) << 1 | bit(2 * i + 1);
    Limbs trial = ShiftedUp(root, 2);
    trial[0] |= 1;
    root = ShiftedUp(root, 1);
    if (IsLess(rest, trial)) continue;
    SubtractFrom(rest, trial);
    root[0] |= 1;
  }
  Ball<kLimbs> x;
  std::copy_n(root.begin(), kLimbs, x.limbs.begin());
  x.exponent = (a.exponent - kBits + (odd ? 1 : 0)) / 2;
  return WithError(x, a.bits, a.error / 2 + 3);  // d / 2 and what was cut
}

// The number of terms of the series of atan and artanh for z^2 < 2^-kSmaller: the rest is below
// 2^(-kSmaller N) of the first term.
template <int kLimbs, int kSmaller>
inline constexpr int kOddTerms = (Ball<kLimbs>::kBits + kSmaller) / kSmaller;

// Returns the sum of (+-1)^n z^(2n+1) / (2n+1): artanh z, or atan z if `alternating`. Requires
// z^2 < 2^-5.
template <int kLimbs>
Ball<kLimbs> OddSeries(const Ball<kLimbs>& z, bool alternating) {
  constexpr int kTerms = kOddTerms<kLimbs, 5>;
  static const OddReciprocals<kLimbs> reciprocal;
  static_assert(kTerms <= kLogTerms<kLimbs> + 1);
  const Ball<kLimbs> square = z * z;
  Ball<kLimbs> sum = reciprocal.of.back();
  for (size_t n = reciprocal.of.size() - 1; n-- > 0;) {
    const Ball<kLimbs> rest = square * sum;
    sum = alternating ? reciprocal.of[n] - rest : reciprocal.of[n] + rest;
  }
  return z * WithRest(sum);
}

// Returns |ln x| of a ball and sets *negative if x < 1. Nothing is known where x may be 1.
template <int kLimbs>
Ball<kLimbs> Log(const Ball<kLimbs>& x, bool* negative) {
  // x = u 2^n with u from about 0.7 to 1.42.
  Ball<kLimbs> u = Scaled(x, -x.Binade());
  int n = x.Binade();
  if (u.limbs[kLimbs - 1] > 0xB504F333F9DE6484) {  // sqrt(2) 2^63
    u = Scaled(u, -1);
    ++n;
  }
  const Ball<kLimbs> one = Exactly<kLimbs>(1);
  const Ball<kLimbs> whole = Ln2<kLimbs>() * static_cast<uint64_t>(n < 0 ? -n : n + (n == 0));
  const bool below = u.Binade() < 0;
  const uint64_t from_one = u.limbs[kLimbs - 1] - (uint64_t{1} << 63);
  *negative = n < 0 || (n == 0 && below);
  if (n != 0 && (below ? ~from_one >> 55 == 1 << 8 : from_one >> 55 == 0)) {
    // u may be 1, so take ln(5 u / 4) - ln(5 / 4).
    const Ball<kLimbs> v = Scaled(u * 5, -2), shift = LogOfRatio<kLimbs>(5, 4);
    const Ball<kLimbs> rest = Scaled(OddSeries((v - one) / (v + one), false), 1);
    return n < 0 ? whole + shift - rest : whole - shift + rest;
  }
  const Ball<kLimbs> rest =
      Scaled(OddSeries((below ? one - u : u - one) / (u + one), false), 1);  // |ln u|
  if (n == 0) return rest;
  return (n < 0) == below ? whole + rest : whole - rest;
}

// atan(k / 16) for k from 1 to 15: atan(k / 16) - atan((k - 1) / 16) = atan(16 / (256 + k (k - 1))).
template <int kLimbs>
struct Sixteenths {
  std::array<Ball<kLimbs>, 16> of = {};  // 0 is not used

  Sixteenths() {
    for (uint64_t k = 1; k < of.size(); ++k) {
      of[k] = OddSeries(Exactly<kLimbs>(16) / (256 + k * (k - 1)), true);
      if (k > 1) of[k] = of[k] + of[k - 1];
    }
  }
};

// Returns atan t. Requires 0 < t <= 1, or hardly more.
template <int kLimbs>
Ball<kLimbs> AtanUpToOne(const Ball<kLimbs>& t) {
  static const Sixteenths<kLimbs> sixteenths;
  const int k = (AlmostFloor(Scaled(t, 5)) - 1) / 2;  // t - k / 16 is from 1/32 to 4/32
  if (k < 1) return OddSeries(t, true);
  const Ball<kLimbs> c = Exactly<kLimbs>(static_cast<uint64_t>(k), -4);
  return sixteenths.of[static_cast<size_t>(k)] +
         OddSeries((t - c) / (Exactly<kLimbs>(1) + t * c), true);
}

// Returns atan t. Requires t > 0.
template <int kLimbs>
Ball<kLimbs> Atan(const Ball<kLimbs>& t) {
  if (t.Binade() < 0) return AtanUpToOne(t);
  return Pi<kLimbs>(-1) - AtanUpToOne(Exactly<kLimbs>(1) / t);
}

// 1 / n! as far as sines and cosines of angles up to pi / 4 need them.
template <int kLimbs>
inline constexpr int kCircleTerms = ExpTerms(Ball<kLimbs>::kBits, 1) / 2 + 1;

// Returns the sine of an angle up to pi / 4, or the cosine: the sum of (-1)^n z^(2n + s) / (2n + s)!
// with s = 1 or 0.
template <int kLimbs>
Ball<kLimbs> SinOrCos(const Ball<kLimbs>& z, bool sine) {
  static const InverseFactorials<kLimbs, 2 * kCircleTerms<kLimbs>> inverse_factorial;
  const Ball<kLimbs> square = z * z;
  const size_t s = sine ? 1 : 0;
  size_t n = 2 * (kCircleTerms<kLimbs> - 1) + s;
  Ball<kLimbs> sum = inverse_factorial.of[n];
  while (n >= 2) {
    n -= 2;
    sum = inverse_factorial.of[n] - square * sum;
  }
  sum = WithRest(sum);
  return sine ? z * sum : sum;
}

}  // namespace numsim::ball
