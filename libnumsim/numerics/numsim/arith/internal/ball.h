// Ball: a positive real number of which a binary approximation and a bound of the error are known.
// Every operation adds to the bound what its own truncation can lose, so an evaluation needs no
// separate analysis of its errors. Integers only: the same bits on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "numsim/rounding/shared/lanes_scalar.h"

namespace numsim::ball {

// The number is s 2^exponent (1 + d), |d| <= error 2^(1 - bits), where s is the integer in `limbs`,
// lowest limb first, with the top bit set. `bits` is at most kBits; a subtraction that cancels
// leading bits lowers it. bits == 0: nothing is known about the number.
template <int kLimbs>
struct Ball {
  static constexpr int kBits = 64 * kLimbs;

  std::array<uint64_t, kLimbs> limbs = {};
  int exponent = 0;
  int bits = kBits;
  uint64_t error = 0;

  // The exponent of the binade of s 2^exponent.
  int Binade() const { return exponent + kBits - 1; }
};

using scalar::Uint128;

// Returns the number with the error bound `error` 2^(1 - bits), or one of which nothing is known if
// that says too little. The margins between these limits make products of two error bounds
// negligible: their sum with the error of a truncation stays below 2 units.
template <int kLimbs>
Ball<kLimbs> WithError(Ball<kLimbs> x, int bits, uint64_t error) {
  constexpr int kLeastBits = 64;
  constexpr uint64_t kLargestError = uint64_t{1} << 30;
  const bool known = bits >= kLeastBits && error <= kLargestError;
  x.bits = known ? bits : 0;
  x.error = known ? error : 0;
  return x;
}

// Returns the error bound in units of 2^(1 - bits) for fewer bits than it has, rounded up.
template <int kLimbs>
uint64_t ErrorAt(const Ball<kLimbs>& x, int bits) {
  const int shift = x.bits - bits;
  return shift >= 64 ? 1 : (x.error >> shift) + (shift > 0 ? 1 : 0);
}

// Shifts by 0 <= n < kBits; the bits that fall off are lost.
template <size_t kLimbs>
std::array<uint64_t, kLimbs> ShiftedUp(const std::array<uint64_t, kLimbs>& x, int n) {
  std::array<uint64_t, kLimbs> y = {};
  const size_t skip = static_cast<size_t>(n) / 64;
  const int part = n % 64;
  for (size_t i = kLimbs; i-- > skip;) {
    y[i] = x[i - skip] << part;
    if (part != 0 && i > skip) y[i] |= x[i - skip - 1] >> (64 - part);
  }
  return y;
}
template <size_t kLimbs>
std::array<uint64_t, kLimbs> ShiftedDown(const std::array<uint64_t, kLimbs>& x, int n) {
  std::array<uint64_t, kLimbs> y = {};
  const size_t skip = static_cast<size_t>(n) / 64;
  const int part = n % 64;
  for (size_t i = 0; i + skip < kLimbs; ++i) {
    y[i] = x[i + skip] >> part;
    if (part != 0 && i + skip + 1 < kLimbs) y[i] |= x[i + skip + 1] << (64 - part);
  }
  return y;
}

// x += y and x -= y. Return the carry or borrow out of the top.
template <size_t kLimbs>
bool AddTo(std::array<uint64_t, kLimbs>& x, const std::array<uint64_t, kLimbs>& y) {
  bool carry = false;
  for (size_t i = 0; i < kLimbs; ++i) {
    const Uint128 sum = Uint128{x[i]} + y[i] + (carry ? 1 : 0);
    x[i] = static_cast<uint64_t>(sum);
    carry = (sum >> 64) != 0;
  }
  return carry;
}
template <size_t kLimbs>
bool SubtractFrom(std::array<uint64_t, kLimbs>& x, const std::array<uint64_t, kLimbs>& y) {
  bool borrow = false;
  for (size_t i = 0; i < kLimbs; ++i) {
    const Uint128 difference = Uint128{x[i]} - y[i] - (borrow ? 1 : 0);
    x[i] = static_cast<uint64_t>(difference);
    borrow = (difference >> 64) != 0;
  }
  return borrow;
}
template <size_t kLimbs>
bool IsLess(const std::array<uint64_t, kLimbs>& x, const std::array<uint64_t, kLimbs>& y) {
  return std::lexicographical_compare(x.rbegin(), x.rend(), y.rbegin(), y.rend());
}

template <size_t kLimbs>
int LeadingZeros(const std::array<uint64_t, kLimbs>& x) {
  int zeros = 0;
  for (size_t i = kLimbs; i-- > 0;) {
    if (x[i] != 0) return zeros + std::countl_zero(x[i]);
    zeros += 64;
  }
  return zeros;
}

// Returns significand 2^exponent, exactly. Requires significand > 0.
template <int kLimbs>
Ball<kLimbs> Exactly(uint64_t significand, int exponent = 0) {
  const int up = std::countl_zero(significand);
  Ball<kLimbs> x;
  x.limbs[kLimbs - 1] = significand << up;
  x.exponent = exponent - up - 64 * (kLimbs - 1);
  return x;
}

// Returns x 2^n, exactly.
template <int kLimbs>
Ball<kLimbs> Scaled(Ball<kLimbs> x, int n) {
  x.exponent += n;
  return x;
}

template <int kLimbs>
Ball<kLimbs> operator*(const Ball<kLimbs>& a, const Ball<kLimbs>& b) {
  std::array<uint64_t, 2 * kLimbs> product = {};
  for (size_t i = 0; i < kLimbs; ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < kLimbs; ++j) {
      const Uint128 sum = Uint128{a.limbs[i]} * b.limbs[j] + product[i + j] + carry;
      product[i + j] = static_cast<uint64_t>(sum);
      carry = static_cast<uint64_t>(sum >> 64);
    }
    product[i + kLimbs] = carry;
  }
  const int up = (product[2 * kLimbs - 1] >> 63) != 0 ? 0 : 1;
  Ball<kLimbs> x;
  x.exponent = a.exponent + b.exponent + Ball<kLimbs>::kBits - up;
  for (size_t i = 0; i < kLimbs; ++i) {
    const uint64_t below = product[i + kLimbs - 1];
    x.limbs[i] = up == 0 ? product[i + kLimbs] : product[i + kLimbs] << 1 | below >> 63;
  }
  const int bits = std::min(a.bits, b.bits);
  return WithError(x, bits, ErrorAt(a, bits) + ErrorAt(b, bits) + 2);
}

// Requires m > 0.
template <int kLimbs>
Ball<kLimbs> operator*(const Ball<kLimbs>& a, uint64_t m) {
  std::array<uint64_t, kLimbs + 1> product = {};
  for (size_t i = 0; i < kLimbs; ++i) {
    const Uint128 sum = Uint128{a.limbs[i]} * m + product[i];
    product[i] = static_cast<uint64_t>(sum);
    product[i + 1] = static_cast<uint64_t>(sum >> 64);
  }
  const int up = LeadingZeros(product);
  product = ShiftedUp(product, up);
  Ball<kLimbs> x;
  std::copy_n(product.begin() + 1, kLimbs, x.limbs.begin());
  x.exponent = a.exponent + 64 - up;
  return WithError(x, a.bits, a.error + 2);
}

// Requires d > 0.
template <int kLimbs>
Ball<kLimbs> operator/(const Ball<kLimbs>& a, uint64_t d) {
  std::array<uint64_t, kLimbs + 1> quotient = {};
  uint64_t rest = 0;
  for (size_t i = kLimbs + 1; i-- > 0;) {
    const Uint128 dividend = Uint128{rest} << 64 | (i == 0 ? 0 : a.limbs[i - 1]);
    quotient[i] = static_cast<uint64_t>(dividend / d);
    rest = static_cast<uint64_t>(dividend % d);
  }
  const int up = LeadingZeros(quotient);
  quotient = ShiftedUp(quotient, up);
  Ball<kLimbs> x;
  std::copy_n(quotient.begin() + 1, kLimbs, x.limbs.begin());
  x.exponent = a.exponent - up;
  return WithError(x, a.bits, a.error + 3);  // the quotient and its lowest limb are cut
}

// By long division in base 2.
template <int kLimbs>
Ball<kLimbs> operator/(const Ball<kLimbs>& a, const Ball<kLimbs>& b) {
  std::array<uint64_t, kLimbs> rest = a.limbs;
  Ball<kLimbs> x;
  x.exponent = a.exponent - b.exponent - Ball<kLimbs>::kBits + 1;
  bool carry = false;
  if (IsLess(rest, b.limbs)) {
    carry = AddTo(rest, rest);
    --x.exponent;
  }
  for (int i = Ball<kLimbs>::kBits - 1; i >= 0; --i) {
    if (carry || !IsLess(rest, b.limbs)) {
      SubtractFrom(rest, b.limbs);
      x.limbs[static_cast<size_t>(i) / 64] |= uint64_t{1} << (i % 64);
    }
    carry = AddTo(rest, rest);
  }
  const int bits = std::min(a.bits, b.bits);
  return WithError(x, bits, ErrorAt(a, bits) + ErrorAt(b, bits) + 2);
}

template <int kLimbs>
Ball<kLimbs> operator+(const Ball<kLimbs>& a, const Ball<kLimbs>& b) {
  if (a.Binade() < b.Binade()) return b + a;
  const int down = a.exponent - b.exponent;
  Ball<kLimbs> x = a, low = b;
  low.limbs = down < Ball<kLimbs>::kBits ? ShiftedDown(b.limbs, down) : decltype(b.limbs){};
  if (AddTo(x.limbs, low.limbs)) {
    x.limbs = ShiftedDown(x.limbs, 1);
    x.limbs[kLimbs - 1] |= uint64_t{1} << 63;
    ++x.exponent;
  }
  // Relative to the sum, the error of b is smaller by the ratio of b to a.
  if (low.bits != 0) low.bits += std::max(down - 1, 0);
  const int bits = std::min(a.bits, low.bits);
  return WithError(x, bits, std::max(ErrorAt(a, bits), ErrorAt(low, bits)) + 3);
}

// Nothing is known about the difference if a is not above b.
template <int kLimbs>
Ball<kLimbs> operator-(const Ball<kLimbs>& a, const Ball<kLimbs>& b) {
  const int down = a.exponent - b.exponent;
  Ball<kLimbs> x = a, low = b;
  if (down < 0) return WithError(x, 0, 0);
  low.limbs = down < Ball<kLimbs>::kBits ? ShiftedDown(b.limbs, down) : decltype(b.limbs){};
  if (!IsLess(low.limbs, x.limbs)) return WithError(x, 0, 0);
  SubtractFrom(x.limbs, low.limbs);
  const int cancelled = LeadingZeros(x.limbs);
  x.limbs = ShiftedUp(x.limbs, cancelled);
  x.exponent -= cancelled;
  // The errors of both and of the shift, relative to a difference below a by 2^-(cancelled + 1).
  if (low.bits != 0) low.bits += std::max(down - 1, 0);  // relative to a, as in a sum
  const int bits = std::min(a.bits, low.bits);
  return WithError(x, bits - cancelled - 1, ErrorAt(a, bits) + ErrorAt(low, bits) + 3);
}

}  // namespace numsim::ball
