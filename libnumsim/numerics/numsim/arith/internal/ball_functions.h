// Elementary functions of balls. Series are cut where the rest is below the unit of the error
// bound, which each function then counts.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "numsim/arith/internal/ball.h"

namespace numsim::ball {

// The leading 512 bits of ln 2 and of 1 / sqrt(2 pi), highest limb first; each has its binary point
// before the first bit, after a shift of ln 2 by 0 and of 1 / sqrt(2 pi) by -1 bits.
inline constexpr std::array<uint64_t, 8> kLn2Limbs = {0xB17217F7D1CF79AB,
                                                      0xC9E3B39803F2F6AF,
                                                      0x40F343267298B62D,
                                                      0x8A0D175B8BAAFA2B,
                                                      0xE7B876206DEBAC98,
                                                      0x559552FB4AFA1B10,
                                                      0xED2EAE35C1382144,
                                                      0x27573B291169B825};
inline constexpr std::array<uint64_t, 8> kInverseRootTwoPiLimbs = {0xCC42299EA1B28468,
                                                                   0x7E59E2805D5C717F,
                                                                   0xA7053E60A24E0DB1,
                                                                   0x808E369004C73A5D,
                                                                   0x3BF158AA88FA7B6E,
                                                                   0x47EBA75766E9D11B,
                                                                   0xD6284EF2E17C2A26,
                                                                   0x4F1D32688BE119FF};

template <int kLimbs>
Ball<kLimbs> Constant(const std::array<uint64_t, 8>& highest_first, int exponent) {
  static_assert(kLimbs <= 8);
  Ball<kLimbs> x;
  for (size_t i = 0; i < kLimbs; ++i) x.limbs[kLimbs - 1 - i] = highest_first[i];
  x.exponent = exponent - Ball<kLimbs>::kBits;
  x.error = 1;
  return x;
}
template <int kLimbs>
Ball<kLimbs> Ln2() {
  return Constant<kLimbs>(kLn2Limbs, 0);
}
template <int kLimbs>
Ball<kLimbs> InverseRootTwoPi() {
  return Constant<kLimbs>(kInverseRootTwoPiLimbs, -1);
}

template <int kLimbs>
Ball<kLimbs> WithRest(Ball<kLimbs> sum) {  // counts the rest of a series
  return WithError(sum, sum.bits, sum.error + 1);
}

// The exponential's argument is halved kHalvings times and its result squared as often.
template <int kLimbs>
inline constexpr int kHalvings = kLimbs <= 2 ? 8 : 12;

// Returns the least N for which the sum of z^n / n! over n > N is below 2^-kBits if z <= 2^(1 -
// halvings): each term is below half of the one before, so twice the first of them is.
constexpr int ExpTerms(int bits, int halvings) {
  int n = 1, below = halvings - 1;  // z^n / n! <= 2^-below
  while (below - 1 < bits) {
    ++n;
    below += halvings - 1 + static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
  }
  return n - 1;
}

// The numbers 1 / n! from n = 0 to kTerms.
template <int kLimbs, int kTerms>
struct InverseFactorials {
  std::array<Ball<kLimbs>, kTerms + 1> of = {};

  InverseFactorials() {
    of[0] = Exactly<kLimbs>(1);
    for (size_t n = 1; n < of.size(); ++n) of[n] = of[n - 1] / n;
  }
};

// Returns e^r. Requires r <= 2.
template <int kLimbs>
Ball<kLimbs> ExpOfSmall(const Ball<kLimbs>& r) {
  static const InverseFactorials<kLimbs, ExpTerms(Ball<kLimbs>::kBits, kHalvings<kLimbs>)>
      inverse_factorial;
  const Ball<kLimbs> z = Scaled(r, -kHalvings<kLimbs>);
  Ball<kLimbs> sum = inverse_factorial.of.back();
  for (size_t n = inverse_factorial.of.size() - 1; n-- > 0;) {
    sum = inverse_factorial.of[n] + z * sum;
  }
  sum = WithRest(sum);
  for (int i = 0; i < kHalvings<kLimbs>; ++i) sum = sum * sum;
  return sum;
}

// Returns floor(x), or that minus 1. Requires x < 2^30.
template <int kLimbs>
int AlmostFloor(const Ball<kLimbs>& x) {
  const int binade = x.Binade();
  return binade < 0 ? 0 : static_cast<int>(x.limbs[kLimbs - 1] >> (63 - binade));
}

// Returns e^y, or e^-y if `negative`. Requires y < 2^20.
template <int kLimbs>
Ball<kLimbs> Exp(const Ball<kLimbs>& y, bool negative) {
  const Ball<kLimbs> ln2 = Ln2<kLimbs>();
  // y / ln 2 from below, to about 2^-30 of itself.
  const int quotient = AlmostFloor(Scaled(y * 0xB8AA3B29u, -31));
  if (!negative) {
    if (quotient < 2) return ExpOfSmall(y);
    const int k = quotient - 1;
    return Scaled(ExpOfSmall(y - ln2 * static_cast<uint64_t>(k)), k);
  }
  const int k = quotient + 2;
  return Scaled(ExpOfSmall(ln2 * static_cast<uint64_t>(k) - y), -k);
}

// The number of terms of the series of LogOfRatio: z^2 < 2^-5, so the terms from n = N on are
// below 2^(-5 N) of the first together.
template <int kLimbs>
inline constexpr int kLogTerms = (Ball<kLimbs>::kBits + 4) / 5;

template <int kLimbs>
struct OddReciprocals {
  std::array<Ball<kLimbs>, kLogTerms<kLimbs>> of = {};  // 1 / (2n + 1)

  OddReciprocals() {
    for (size_t n = 0; n < of.size(); ++n) of[n] = Exactly<kLimbs>(1) / (2 * n + 1);
  }
};

// Returns |ln(a / b)| = 2 artanh(|a - b| / (a + b)). Requires a != b, both below 2^62, and a / b
// from 0.7 to 1.42.
template <int kLimbs>
Ball<kLimbs> LogOfRatio(uint64_t a, uint64_t b) {
  static const OddReciprocals<kLimbs> reciprocal;
  const Ball<kLimbs> z = Exactly<kLimbs>(a > b ? a - b : b - a) / (a + b);
  const Ball<kLimbs> square = z * z;
  Ball<kLimbs> sum = reciprocal.of.back();
  for (size_t n = reciprocal.of.size() - 1; n-- > 0;) sum = reciprocal.of[n] + square * sum;
  return Scaled(z * WithRest(sum), 1);
}

// Returns the integral from 0 to x of e^((x^2 - t^2) / 2) dt, the sum of x^(2n+1) / (2n+1)!! [DLMF]
// 7.6.2, for x = m 2^e. Requires m < 2^32 and x <= 16.
template <int kLimbs>
Ball<kLimbs> NormalSeries(uint64_t m, int e) {
  const Ball<kLimbs> square = Exactly<kLimbs>(m * m, 2 * e);
  Ball<kLimbs> term = Exactly<kLimbs>(m, e), sum = term;
  for (uint64_t n = 1;; ++n) {
    term = Scaled(term * (m * m), 2 * e) / (2 * n + 1);
    sum = sum + term;
    // The next terms are below half of the one before, if 2 x^2 is below 2n + 3; the rest of the
    // sum is then below this term.
    const bool halved = square.Binade() + 2 <= static_cast<int>(std::bit_width(2 * n + 3)) - 1;
    if (halved && term.Binade() + 1 <= sum.Binade() - Ball<kLimbs>::kBits) return WithRest(sum);
  }
}

}  // namespace numsim::ball
