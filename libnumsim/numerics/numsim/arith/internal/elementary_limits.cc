#include "numsim/arith/internal/elementary_limits.h"

#include <bit>

namespace numsim {
namespace {

using Argument = ElementaryArgument;
using Function = ElementaryFunction;
using Kind = Limit::Kind;

// |x|^2 below this power of two is nothing beside 1.
constexpr int kSmallSquare = -48, kSmall = -97;

Limit Invalid() { return {.kind = Kind::kNan, .flags = kInvalid}; }
Limit Infinite(bool negative, Flags flags = 0) {
  return {.kind = Kind::kInfinity, .negative = negative, .flags = flags};
}
Limit PowerOfTwo(int exponent, bool negative = false) {
  return Limit::Exactly(negative, exponent, 1);
}
// The numbers that stand for all that are too large or too small for any format.
Limit Huge(bool negative = false) { return {Kind::kJustAbove, negative, 1 << 16, 1, 0}; }
Limit Tiny(bool negative = false) { return {Kind::kJustAbove, negative, -(1 << 16), 1, 0}; }

// x 2^n and powers of two, from above or from below in magnitude.
Limit Near(const Argument& x, bool above, int n = 0) {
  return {above ? Kind::kJustAbove : Kind::kJustBelow, x.negative, x.e + n, x.m, 0};
}
Limit NearPower(int exponent, bool above, bool negative = false) {
  return {above ? Kind::kJustAbove : Kind::kJustBelow, negative, exponent, 1, 0};
}

bool IsOne(const Argument& x) { return std::has_single_bit(x.m) && x.Binade() == 0; }
bool IsAboveOne(const Argument& x) { return x.IsAtLeast(0) && !IsOne(x); }

// Returns |x| 2^n modulo 4 if that is an integer.
std::optional<int> QuartersModulo4(const Argument& x, int n) {
  const int e = x.e + n, low = std::countr_zero(x.m);
  if (e + low < 0) return std::nullopt;
  if (e + low > 1) return 0;
  return static_cast<int>((e < 0 ? x.m >> -e : x.m << e) & 3);
}

std::optional<Limit> OfExponential(Function function, const Argument& x) {
  switch (function) {
    case Function::kExp2:
      if (x.e + std::countr_zero(x.m) >= 0 && x.IsBelow(9)) {
        const auto n = static_cast<int>(x.e < 0 ? x.m >> -x.e : x.m << x.e);
        return PowerOfTwo(x.negative ? -n : n);
      }
      [[fallthrough]];
    case Function::kExp:
      if (x.IsBelow(kSmall)) return NearPower(0, !x.negative);
      if (x.IsAtLeast(9)) return x.negative ? Tiny() : Huge();
      return std::nullopt;
    case Function::kExpMinusOne:  // x + x^2 / 2, and -1 + e^x
      if (x.IsBelow(kSmall)) return Near(x, !x.negative);
      if (x.negative && x.IsAtLeast(7)) return NearPower(0, false, true);
      if (x.IsAtLeast(9)) return Huge();
      return std::nullopt;
    case Function::kSoftplus:  // e^x, and x + e^-x
      if (x.negative && x.IsAtLeast(9)) return Tiny();
      if (!x.negative && x.IsAtLeast(7)) return Near(x, true);
      return std::nullopt;
    case Function::kSigmoid:
      // |sigmoid(x) - 1/2| < |x| / 4, and 1 - e^-x < sigmoid(x) < 1.
      if (x.IsBelow(kSmall)) return NearPower(-1, !x.negative);
      if (x.negative && x.IsAtLeast(9)) return Tiny();
      if (!x.negative && x.IsAtLeast(7)) return NearPower(0, false);
      return std::nullopt;
    default:
      // GELU: x / 2 (1 + t) with 0 < t / x < 1, and x (1 - t) with t < e^(-x^2 / 2) for x >= 16.
      if (x.IsBelow(kSmall)) return Near(x, !x.negative, -1);
      if (x.IsAtLeast(4)) return x.negative ? Tiny(true) : Near(x, false);
      return std::nullopt;
  }
}

std::optional<Limit> OfLogarithm(Function function, const Argument& x) {
  if (function == Function::kLogOnePlus) {
    if (x.negative && IsOne(x)) return Infinite(true, kDivideByZero);
    if (x.negative && IsAboveOne(x)) return Invalid();
    if (x.IsBelow(kSmall)) return Near(x, x.negative);  // x - x^2 / 2
    return std::nullopt;
  }
  if (x.negative) return Invalid();
  if (function == Function::kRsqrt) return std::nullopt;
  const int n = x.Binade();
  if (!std::has_single_bit(x.m) || (function == Function::kLog && n != 0)) return std::nullopt;
  if (n == 0) return Limit::Zero(false);
  return Limit::Exactly(n < 0, 0, static_cast<uint64_t>(n < 0 ? -n : n));
}

std::optional<Limit> OfHyperbolic(Function function, const Argument& x) {
  const bool small = x.IsBelow(kSmallSquare);
  switch (function) {
    case Function::kSinh:  // x + x^3 / 6
      if (small) return Near(x, true);
      if (x.IsAtLeast(9)) return Huge(x.negative);
      return std::nullopt;
    case Function::kCosh:  // 1 + x^2 / 2
      if (small) return NearPower(0, true);
      if (x.IsAtLeast(9)) return Huge();
      return std::nullopt;
    case Function::kTanh:  // x - x^3 / 3, and 1 - 2 e^-2x
      if (small) return Near(x, false);
      if (x.IsAtLeast(6)) return NearPower(0, false, x.negative);
      return std::nullopt;
    case Function::kArcSinh:  // x - x^3 / 6
      if (small) return Near(x, false);
      return std::nullopt;
    case Function::kArcCosh:
      if (x.negative || x.IsBelow(0)) return Invalid();
      if (IsOne(x)) return Limit::Zero(false);
      return std::nullopt;
    default:  // atanh: x + x^3 / 3
      if (IsOne(x)) return Infinite(x.negative, kDivideByZero);
      if (IsAboveOne(x)) return Invalid();
      if (small) return Near(x, true);
      return std::nullopt;
  }
}

std::optional<Limit> OfTurn(Function function, const Argument& x) {
  const auto halves = QuartersModulo4(x, 1);
  switch (function) {
    case Function::kSinPi:
      if (!halves) return std::nullopt;
      if (*halves % 2 == 0) return Limit::Zero(x.negative);
      return PowerOfTwo(0, x.negative != (*halves == 3));
    case Function::kCosPi:  // 1 - (pi x)^2 / 2
      if (x.IsBelow(kSmallSquare - 2)) return NearPower(0, false);
      if (!halves) return std::nullopt;
      return *halves % 2 == 0 ? PowerOfTwo(0, *halves == 2) : Limit::Zero(false);
    default:
      break;
  }
  if (halves) {  // the zeros of tanpi at odd integers and the poles after them are negative
    const bool negative = x.negative != (*halves >= 2);
    return *halves % 2 == 0 ? Limit::Zero(negative) : Infinite(negative, kDivideByZero);
  }
  const auto quarters = QuartersModulo4(x, 2);
  if (quarters) return PowerOfTwo(0, x.negative != (*quarters == 3));
  return std::nullopt;
}

std::optional<Limit> OfCircle(Function function, const Argument& x) {
  const bool small = x.IsBelow(kSmallSquare);
  switch (function) {
    case Function::kSin:  // x - x^3 / 6
    case Function::kArcTan:
      return small ? std::optional(Near(x, false)) : std::nullopt;
    case Function::kCos:  // 1 - x^2 / 2
      return small ? std::optional(NearPower(0, false)) : std::nullopt;
    case Function::kTan:  // x + x^3 / 3
      return small ? std::optional(Near(x, true)) : std::nullopt;
    case Function::kArcTanPi:  // 1/2 - 1 / (pi x)
      if (IsOne(x)) return PowerOfTwo(-2, x.negative);
      if (x.IsAtLeast(-kSmall)) return NearPower(-1, false, x.negative);
      return std::nullopt;
    default:
      break;
  }
  if (IsAboveOne(x)) return Invalid();
  const bool one = IsOne(x);
  switch (function) {
    case Function::kArcSin:  // x + x^3 / 6
      if (one) return Limit::Pi(x.negative, -1);
      return small ? std::optional(Near(x, true)) : std::nullopt;
    case Function::kArcSinPi:
      return one ? std::optional(PowerOfTwo(-1, x.negative)) : std::nullopt;
    case Function::kArcCos:
      if (!one) return std::nullopt;
      return x.negative ? Limit::Pi(false, 0) : Limit::Zero(false);
    default:  // acospi: 1/2 - x / pi
      if (one) return x.negative ? PowerOfTwo(0) : Limit::Zero(false);
      if (x.IsBelow(kSmall)) return NearPower(-1, x.negative);
      return std::nullopt;
  }
}

}  // namespace

Limit LimitAtInfinity(ElementaryFunction function, bool negative) noexcept {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
    case Function::kSoftplus:
      return negative ? Limit::Zero(false) : Infinite(false);
    case Function::kExpMinusOne:
      return negative ? PowerOfTwo(0, true) : Infinite(false);
    case Function::kLog:
    case Function::kLog2:
    case Function::kLogOnePlus:
    case Function::kArcCosh:
      return negative ? Invalid() : Infinite(false);
    case Function::kRsqrt:
      return negative ? Invalid() : Limit::Zero(false);
    case Function::kTanh:
      return PowerOfTwo(0, negative);
    case Function::kSigmoid:
      return negative ? Limit::Zero(false) : PowerOfTwo(0);
    case Function::kGelu:
    case Function::kGeluTanh:
      return negative ? Limit::Zero(true) : Infinite(false);
    case Function::kSinh:
    case Function::kArcSinh:
      return Infinite(negative);
    case Function::kCosh:
      return Infinite(false);
    case Function::kArcTan:
      return Limit::Pi(negative, -1);
    case Function::kArcTanPi:
      return PowerOfTwo(-1, negative);
    default:
      return Invalid();
  }
}

Limit LimitAtZero(ElementaryFunction function, bool negative) noexcept {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
    case Function::kCos:
    case Function::kCosPi:
    case Function::kCosh:
      return PowerOfTwo(0);
    case Function::kLog:
    case Function::kLog2:
      return Infinite(true, kDivideByZero);
    case Function::kRsqrt:
      return Infinite(negative, kDivideByZero);
    case Function::kSigmoid:
    case Function::kArcCosPi:
      return PowerOfTwo(-1);
    case Function::kArcCos:
      return Limit::Pi(false, -1);
    case Function::kArcCosh:
      return Invalid();
    case Function::kSoftplus:
      return {.kind = Kind::kLn2};
    default:
      return Limit::Zero(negative);
  }
}

std::optional<Limit> LimitAtFinite(ElementaryFunction function,
                                   const ElementaryArgument& x) noexcept {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
    case Function::kExpMinusOne:
    case Function::kSoftplus:
    case Function::kSigmoid:
    case Function::kGelu:
    case Function::kGeluTanh:
      return OfExponential(function, x);
    case Function::kLog:
    case Function::kLog2:
    case Function::kLogOnePlus:
    case Function::kRsqrt:
      return OfLogarithm(function, x);
    case Function::kSinh:
    case Function::kCosh:
    case Function::kTanh:
    case Function::kArcSinh:
    case Function::kArcCosh:
    case Function::kArcTanh:
      return OfHyperbolic(function, x);
    case Function::kSinPi:
    case Function::kCosPi:
    case Function::kTanPi:
      return OfTurn(function, x);
    default:
      return OfCircle(function, x);
  }
}

}  // namespace numsim
