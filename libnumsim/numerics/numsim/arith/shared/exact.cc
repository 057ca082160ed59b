#include "numsim/arith/shared/exact.h"

#include <algorithm>
#include <bit>

#include "numsim/rounding/shared/lanes_scalar.h"

namespace numsim::exact {
namespace {

using scalar::Uint128;

constexpr int kBits = 63;  // width of a significand

Unrounded Zero(bool negative) { return {NumberKind::kFinite, negative, 0, 0}; }
Unrounded Infinity(bool negative) { return {NumberKind::kInfinity, negative, 0, 0}; }
Unrounded Nan() { return {NumberKind::kNan, false, 0, 0}; }
Outcome Invalid() { return {Nan(), kInvalid}; }

bool IsNan(const Unrounded& x) { return x.kind == NumberKind::kNan; }
bool IsInfinite(const Unrounded& x) { return x.kind == NumberKind::kInfinity; }
bool IsZero(const Unrounded& x) { return x.kind == NumberKind::kFinite && x.significand == 0; }

int BitWidth(Uint128 x) {
  const uint64_t high = static_cast<uint64_t>(x >> 64);
  return high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                   : static_cast<int>(std::bit_width(static_cast<uint64_t>(x)));
}

// Returns x * 2^exponent rounded to odd. `sticky` is true if the exact value has nonzero bits below
// x.
Unrounded ToOdd(bool negative, Uint128 x, int exponent, bool sticky) {
  const int cut = std::max(BitWidth(x) - kBits, 0);
  sticky = sticky || (x & ((Uint128{1} << cut) - 1)) != 0;
  const uint64_t kept = static_cast<uint64_t>(x >> cut);
  return {NumberKind::kFinite, negative, exponent + cut, kept | (sticky ? 1 : 0)};
}

// Returns the same number with the top bit of the significand at position 62.
Unrounded Normalised(Unrounded x) {
  const int up = kBits - static_cast<int>(std::bit_width(x.significand));
  x.significand <<= up;
  x.exponent -= up;
  return x;
}

// Returns the sum of two finite numbers other than zero.
Unrounded SumOfFinite(const Unrounded& a, const Unrounded& b, bool zero_negative) {
  Unrounded high = Normalised(a), low = Normalised(b);
  const bool swapped = low.exponent > high.exponent ||
                       (low.exponent == high.exponent && low.significand > high.significand);
  if (swapped) std::swap(high, low);
  // Adds 63 bits below both significands, so that a shift by at most 63 bits is exact.
  const Uint128 wide_high = Uint128{high.significand} << kBits;
  const Uint128 wide_low = Uint128{low.significand} << kBits;
  const int shift = std::min(high.exponent - low.exponent, 127);
  const Uint128 aligned = wide_low >> shift;
  const bool sticky = (aligned << shift) != wide_low;
  const int exponent = high.exponent - kBits;
  if (high.negative == low.negative) {
    return ToOdd(high.negative, wide_high + aligned, exponent, sticky);
  }
  // If the shift cut bits of the smaller operand, they borrow one from the difference: it becomes
  // the floor of the exact difference, and `sticky` stands for the rest.
  const Uint128 difference = wide_high - aligned - (sticky ? 1 : 0);
  if (difference == 0 && !sticky) return Zero(zero_negative);
  return ToOdd(high.negative, difference, exponent, sticky);
}

// Returns floor(sqrt(x)), computed bit by bit.
uint64_t IntegerRoot(Uint128 x) {
  Uint128 root = 0;
  for (Uint128 bit = Uint128{1} << 126; bit != 0; bit >>= 2) {
    if (x >= root + bit) {
      x -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return static_cast<uint64_t>(root);
}

// Returns 2^power modulo m, for m below 2^32.
uint64_t PowerOfTwoModulo(int power, uint64_t m) {
  uint64_t result = 1 % m, base = 2 % m;
  for (; power != 0; power >>= 1) {
    if ((power & 1) != 0) result = result * base % m;
    base = base * base % m;
  }
  return result;
}

}  // namespace

Unrounded Negated(Unrounded a) noexcept {
  a.negative = !a.negative;
  return a;
}

Outcome Sum(const Unrounded& a, const Unrounded& b, bool zero_negative) noexcept {
  if (IsNan(a) || IsNan(b)) return {Nan()};
  if (IsInfinite(a) && IsInfinite(b) && a.negative != b.negative) return Invalid();
  if (IsInfinite(a)) return {a};
  if (IsInfinite(b)) return {b};
  if (IsZero(a) && IsZero(b)) return {Zero(a.negative == b.negative ? a.negative : zero_negative)};
  if (IsZero(a)) return {b};
  if (IsZero(b)) return {a};
  return {SumOfFinite(a, b, zero_negative)};
}

Outcome Product(const Unrounded& a, const Unrounded& b) noexcept {
  const bool negative = a.negative != b.negative;
  if (IsNan(a) || IsNan(b)) return {Nan()};
  if ((IsInfinite(a) && IsZero(b)) || (IsZero(a) && IsInfinite(b))) return Invalid();
  if (IsInfinite(a) || IsInfinite(b)) return {Infinity(negative)};
  const Uint128 product = Uint128{a.significand} * b.significand;
  return {ToOdd(negative, product, a.exponent + b.exponent, false)};
}

Outcome Quotient(const Unrounded& a, const Unrounded& b) noexcept {
  const bool negative = a.negative != b.negative;
  if (IsNan(a) || IsNan(b)) return {Nan()};
  if ((IsInfinite(a) && IsInfinite(b)) || (IsZero(a) && IsZero(b))) return Invalid();
  if (IsInfinite(a)) return {Infinity(negative)};
  if (IsInfinite(b) || IsZero(a)) return {Zero(negative)};
  if (IsZero(b)) return {Infinity(negative), kDivideByZero};
  const Unrounded dividend = Normalised(a), divisor = Normalised(b);
  const Uint128 numerator = Uint128{dividend.significand} << kBits;  // quotient: 63 or 64 bits
  const Uint128 quotient = numerator / divisor.significand;
  const bool sticky = numerator % divisor.significand != 0;
  return {ToOdd(negative, quotient, dividend.exponent - divisor.exponent - kBits, sticky)};
}

Outcome Root(const Unrounded& a) noexcept {
  if (IsNan(a)) return {Nan()};
  if (IsZero(a)) return {a};
  if (a.negative) return Invalid();
  if (IsInfinite(a)) return {a};
  const Unrounded x = Normalised(a);
  const int up = (x.exponent & 1) != 0 ? 63 : 62;  // leaves an even exponent
  const Uint128 radicand = Uint128{x.significand} << up;
  const uint64_t root = IntegerRoot(radicand);
  return {ToOdd(false, root, (x.exponent - up) / 2, Uint128{root} * root != radicand)};
}

Outcome Remainder(const Unrounded& a, const Unrounded& b) noexcept {
  if (IsNan(a) || IsNan(b)) return {Nan()};
  if (IsInfinite(a) || IsZero(b)) return Invalid();
  if (IsInfinite(b) || IsZero(a)) return {a};
  // In units of 2^exponent both operands are integers: x = m_a 2^up and y = m_b 2^down, where up or
  // down is 0.
  const int exponent = std::min(a.exponent, b.exponent);
  const int up = a.exponent - exponent, down = b.exponent - exponent;
  if (down > 32 && down + static_cast<int>(std::bit_width(b.significand)) >
                       static_cast<int>(std::bit_width(a.significand)) + 2) {
    return {a};  // |a| is far below half of |b|
  }
  const uint64_t y = b.significand << down;
  // x modulo 2y contains the parity of the quotient.
  const uint64_t x = up == 0 ? a.significand % (2 * y)
                             : a.significand % (2 * y) * PowerOfTwoModulo(up, 2 * y) % (2 * y);
  const bool odd = x >= y;
  const uint64_t rest = odd ? x - y : x;
  const bool away = 2 * rest > y || (2 * rest == y && odd);
  if (!away) return {Unrounded{NumberKind::kFinite, a.negative, exponent, rest}};
  return {Unrounded{NumberKind::kFinite, !a.negative, exponent, y - rest}};
}

}  // namespace numsim::exact
