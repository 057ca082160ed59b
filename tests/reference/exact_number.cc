#include "tests/reference/exact_number.h"

#include <algorithm>
#include <cmath>

namespace oracle {
namespace {

using Kind = Real::Kind;

ExactNumber Nan(Flags flags) {
  ExactNumber nan;
  nan.kind = Kind::kNan;
  nan.flags = flags;
  return nan;
}

ExactNumber Infinity(bool negative, Flags flags) {
  ExactNumber infinity;
  infinity.kind = Kind::kInfinity;
  infinity.negative = negative;
  infinity.flags = flags;
  return infinity;
}

ExactNumber Zero(bool negative, Flags flags) {
  ExactNumber zero;
  zero.negative = negative;
  zero.flags = flags;
  return zero;
}

// How a 2^e compares with b 2^f, all of them positive.
int CompareScaled(const Natural& a, int64_t e, const Natural& b, int64_t f) {
  const int64_t top_a = a.BitLength() + e;
  const int64_t top_b = b.BitLength() + f;
  if (top_a != top_b) return top_a < top_b ? -1 : 1;
  // The highest bits have the same place, so the exponents differ by the
  // difference of lengths.
  const int longer = a.BitLength() - b.BitLength();
  if (longer == 0) return Compare(a, b);
  return longer > 0 ? Compare(a, b << longer) : Compare(a << -longer, b);
}

bool SignalsInvalid(const Format& f, uint32_t code) {
  for (const CodeRange& range : f.nans) {
    if (code < range.first || code > range.last) continue;
    for (uint32_t canonical : {f.nan_plus, f.nan_minus}) {
      if (canonical >= range.first && canonical <= range.last) return code < canonical;
    }
  }
  return false;
}

// a + b, neither zero, both finite.
ExactNumber SumOfTwo(const ExactNumber& a, const ExactNumber& b) {
  ExactNumber sum;
  sum.exponent = std::min(a.exponent, b.exponent);
  const Natural left = a.numerator << static_cast<int>(a.exponent - sum.exponent);
  const Natural right = b.numerator << static_cast<int>(b.exponent - sum.exponent);
  if (a.negative == b.negative) {
    sum.negative = a.negative;
    sum.numerator = left + right;
    return sum;
  }
  const int order = Compare(left, right);
  sum.negative = order > 0 ? a.negative : b.negative;
  sum.numerator = order > 0 ? left - right : right - left;
  return sum;
}

}  // namespace

Dyadic ToDyadic(double x) {
  if (x == 0) return {};
  int exponent;
  const double fraction = std::frexp(x, &exponent);
  return {static_cast<uint64_t>(std::ldexp(fraction, 53)), exponent - 53};
}

int ExactNumber::CompareWith(Dyadic y) const {
  if (numerator.IsZero() || y.significand == 0) return !numerator.IsZero() - (y.significand != 0);
  if (!root) return CompareScaled(numerator, exponent, denominator * y.significand, y.exponent);
  const Natural square = Natural(y.significand) * y.significand;
  return CompareScaled(numerator, exponent, denominator * square, 2 * y.exponent);
}

double ExactNumber::Approximate() const {
  const double fraction = numerator.Approximate() / denominator.Approximate();
  const int64_t limit = 3000;
  const double x = std::ldexp(fraction, static_cast<int>(std::clamp(exponent, -limit, limit)));
  return root ? std::sqrt(x) : x;
}

ExactNumber ExactOf(const Grid& grid, uint32_t code) {
  const Format& f = grid.format();
  const Real real = DecodeCode(grid, code);
  ExactNumber x;
  x.kind = real.kind;
  x.negative = real.negative;
  if (real.kind == Kind::kNan && SignalsInvalid(f, code)) x.flags = kInvalidFlag;
  double magnitude = real.magnitude;
  if (real.kind == Kind::kUnused) {
    x.kind = Kind::kFinite;
    magnitude = grid.Value(int64_t{1} << (f.bits - 1));
  }
  if (x.kind != Kind::kFinite) return x;
  const Dyadic dyadic = ToDyadic(magnitude);
  // Trailing zeros go, so that numbers stay short.
  const int zeros = dyadic.significand == 0 ? 0 : __builtin_ctzll(dyadic.significand);
  x.numerator = dyadic.significand >> zeros;
  x.exponent = dyadic.exponent + zeros;
  return x;
}

ExactNumber ExactSum(std::span<const ExactNumber> addends) {
  Flags flags = 0;
  bool nan = false;
  bool infinite[2] = {false, false};
  bool only_zeros_of[2] = {true, true};
  ExactNumber sum;
  for (const ExactNumber& x : addends) {
    flags |= x.flags;
    nan |= x.IsNan();
    if (x.IsInfinite()) infinite[x.negative] = true;
    only_zeros_of[!x.negative] = false;
    if (!x.IsZero()) only_zeros_of[0] = only_zeros_of[1] = false;
    if (x.kind == Kind::kFinite && !x.IsZero()) sum = sum.IsZero() ? x : SumOfTwo(sum, x);
  }
  if (nan) return Nan(flags);
  if (infinite[0] && infinite[1]) return Nan(flags | kInvalidFlag);
  if (infinite[0] || infinite[1]) return Infinity(infinite[1], flags);
  if (sum.IsZero()) {
    sum = Zero(only_zeros_of[1], 0);
    sum.sign_by_mode = !only_zeros_of[0] && !only_zeros_of[1];
  }
  sum.flags = flags;
  return sum;
}

ExactNumber ExactProduct(const ExactNumber& a, const ExactNumber& b) {
  const Flags flags = a.flags | b.flags;
  const bool negative = a.negative != b.negative;
  if (a.IsNan() || b.IsNan()) return Nan(flags);
  if (a.IsInfinite() || b.IsInfinite()) {
    if (a.IsZero() || b.IsZero()) return Nan(flags | kInvalidFlag);
    return Infinity(negative, flags);
  }
  ExactNumber product = Zero(negative, flags);
  product.numerator = a.numerator * b.numerator;
  product.exponent = a.exponent + b.exponent;
  return product;
}

ExactNumber ExactQuotient(const ExactNumber& a, const ExactNumber& b) {
  const Flags flags = a.flags | b.flags;
  const bool negative = a.negative != b.negative;
  if (a.IsNan() || b.IsNan()) return Nan(flags);
  if (a.IsInfinite()) return b.IsInfinite() ? Nan(flags | kInvalidFlag) : Infinity(negative, flags);
  if (b.IsInfinite()) return Zero(negative, flags);
  if (b.IsZero()) {
    if (a.IsZero()) return Nan(flags | kInvalidFlag);
    return Infinity(negative, flags | kDivideByZeroFlag);
  }
  ExactNumber quotient = Zero(negative, flags);
  quotient.numerator = a.numerator;
  quotient.denominator = b.numerator;
  quotient.exponent = a.exponent - b.exponent;
  return quotient;
}

ExactNumber ExactRoot(const ExactNumber& a) {
  if (a.IsNan()) return Nan(a.flags);
  if (a.IsZero()) return a;
  if (a.negative) return Nan(a.flags | kInvalidFlag);
  ExactNumber root = a;
  root.root = true;
  return root;
}

ExactNumber ExactRemainder(const ExactNumber& a, const ExactNumber& b) {
  const Flags flags = a.flags | b.flags;
  if (a.IsNan() || b.IsNan()) return Nan(flags);
  if (a.IsInfinite() || b.IsZero()) return Nan(flags | kInvalidFlag);
  if (b.IsInfinite() || a.IsZero()) return a;
  ExactNumber remainder = Zero(a.negative, flags);
  remainder.exponent = std::min(a.exponent, b.exponent);
  const Natural dividend = a.numerator << static_cast<int>(a.exponent - remainder.exponent);
  const Natural divisor = b.numerator << static_cast<int>(b.exponent - remainder.exponent);
  const Division division = Divide(dividend, divisor);
  remainder.numerator = division.rest;
  // The nearest multiple may be the next one: then the rest is negative.
  const int half = Compare(division.rest + division.rest, divisor);
  if (half > 0 || (half == 0 && division.odd_quotient)) {
    remainder.numerator = divisor - division.rest;
    remainder.negative = !a.negative;
  }
  return remainder;
}

ExactNumber ExactScaled(const ExactNumber& a, int64_t n) {
  if (a.IsNan()) return Nan(a.flags);
  ExactNumber scaled = a;
  const int64_t limit = 1000000;
  scaled.exponent += std::clamp(n, -limit, limit);
  return scaled;
}

ExactNumber Negated(ExactNumber a) {
  a.negative = !a.negative;
  return a;
}

}  // namespace oracle
