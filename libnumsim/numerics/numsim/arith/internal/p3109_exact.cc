#include "numsim/arith/internal/p3109_exact.h"

#include <bit>
#include <optional>
#include <utility>

#include "numsim/arith/elementary.h"
#include "numsim/arith/internal/order.h"
#include "numsim/arith/shared/exact_elementary.h"
#include "numsim/arith/shared/wide.h"
#include "numsim/base/error.h"

namespace numsim::p3109 {
namespace {

using exact::Divisor;
using exact::Wide;
using exact::WideOf;

constexpr Unrounded kNan = {NumberKind::kNan, false, 0, 0};
constexpr Unrounded kZero = {NumberKind::kFinite, false, 0, 0};

Unrounded Infinite(bool negative) { return {NumberKind::kInfinity, negative, 0, 0}; }
Unrounded SignOf(bool negative) { return {NumberKind::kFinite, negative, 0, 1}; }
bool IsNan(const Unrounded& x) { return x.kind == NumberKind::kNan; }
bool IsInfinite(const Unrounded& x) { return x.kind == NumberKind::kInfinity; }
bool IsZero(const Unrounded& x) { return x.kind == NumberKind::kFinite && x.significand == 0; }
Unrounded WithSign(Unrounded x, bool negative) {
  x.negative = negative;
  return x;
}

Unrounded Divided(const Wide& x, const Divisor& d) { return Narrow(Quotient(x, d)); }
Divisor DivisorOf(const Unrounded& x) { return {x.significand, x.exponent}; }

std::optional<ElementaryFunction> FunctionOf(Op op) {
  using F = ElementaryFunction;
  switch (op) {
    case Op::kRSqrt:
      return F::kRsqrt;
    case Op::kExp:
      return F::kExp;
    case Op::kLog:
      return F::kLog;
    case Op::kExpMinusOne:
      return F::kExpMinusOne;
    case Op::kLogOnePlus:
      return F::kLogOnePlus;
    case Op::kExp2:
      return F::kExp2;
    case Op::kLog2:
      return F::kLog2;
    case Op::kSin:
      return F::kSin;
    case Op::kCos:
      return F::kCos;
    case Op::kTan:
      return F::kTan;
    case Op::kArcSin:
      return F::kArcSin;
    case Op::kArcCos:
      return F::kArcCos;
    case Op::kArcTan:
      return F::kArcTan;
    case Op::kSinh:
      return F::kSinh;
    case Op::kCosh:
      return F::kCosh;
    case Op::kTanh:
      return F::kTanh;
    case Op::kArcSinh:
      return F::kArcSinh;
    case Op::kArcCosh:
      return F::kArcCosh;
    case Op::kArcTanh:
      return F::kArcTanh;
    case Op::kSinPi:
      return F::kSinPi;
    case Op::kCosPi:
      return F::kCosPi;
    case Op::kTanPi:
      return F::kTanPi;
    case Op::kArcSinPi:
      return F::kArcSinPi;
    case Op::kArcCosPi:
      return F::kArcCosPi;
    case Op::kArcTanPi:
      return F::kArcTanPi;
    case Op::kSoftplus:
      return F::kSoftplus;
    default:
      return std::nullopt;
  }
}

std::optional<Extremum> ExtremumOf(Op op) {
  switch (op) {
    case Op::kMaximum:
      return Extremum::kMaximum;
    case Op::kMinimum:
      return Extremum::kMinimum;
    case Op::kMaximumNumber:
      return Extremum::kMaximumNumber;
    case Op::kMinimumNumber:
      return Extremum::kMinimumNumber;
    case Op::kMaximumMagnitude:
      return Extremum::kMaximumMagnitude;
    case Op::kMinimumMagnitude:
      return Extremum::kMinimumMagnitude;
    case Op::kMaximumMagnitudeNumber:
      return Extremum::kMaximumMagnitudeNumber;
    case Op::kMinimumMagnitudeNumber:
      return Extremum::kMinimumMagnitudeNumber;
    case Op::kMinimumFinite:
      return Extremum::kMinimumFinite;
    case Op::kMaximumFinite:
      return Extremum::kMaximumFinite;
    default:
      return std::nullopt;
  }
}

Unrounded Exactly(const Unrounded& x, const Divisor& d) {
  return x.kind != NumberKind::kFinite || x.significand == 0 ? x : Divided(WideOf(x), d);
}

Unrounded OfFunction(Op op, ElementaryFunction function, const Unrounded& x, const Divisor& d) {
  const Unrounded y = exact::Elementary(function, x, d).value;
  // A pole without a sign is NaN.
  const bool pole = op == Op::kRSqrt || op == Op::kTanPi;
  return pole && IsInfinite(y) ? kNan : y;
}

Unrounded Root(const Unrounded& x, const Divisor& d) {
  if (IsNan(x) || x.negative) return kNan;
  if (IsInfinite(x) || IsZero(x)) return x;
  return Divided(Root(WideOf(x)), d);
}

Unrounded Divide(const Unrounded& x, const Unrounded& y, const Divisor& d) {
  if (IsNan(x) || IsNan(y) || IsZero(y) || (IsInfinite(x) && IsInfinite(y))) return kNan;
  if (IsInfinite(x)) return Infinite(x.negative != y.negative);
  if (IsInfinite(y) || IsZero(x)) return kZero;
  return Divided(Quotient(WideOf(WithSign(x, x.negative != y.negative)), DivisorOf(y)), d);
}

Unrounded Multiply(const Unrounded& x, const Unrounded& y, const Divisor& d) {
  if (x.kind != NumberKind::kFinite || y.kind != NumberKind::kFinite || IsZero(x) || IsZero(y)) {
    return Product(x, y);
  }
  return Divided(Product(WideOf(x), WideOf(y)), d);
}

// The term of a sum: a number, or the product of two.
struct Term {
  Unrounded special = {};  // not finite, or 0
  Wide value = {};         // zero if `special` says all

  explicit Term(const Unrounded& x)
      : special(x), value(x.kind == NumberKind::kFinite ? WideOf(x) : Wide{}) {}
  Term(const Unrounded& x, const Unrounded& y) : special(Product(x, y)) {
    if (special.kind == NumberKind::kFinite && !IsZero(x) && !IsZero(y)) {
      value = Product(WideOf(x), WideOf(y));
    }
  }
};

int Binade(const Wide& x) { return x.exponent; }  // of normalised numbers, to a constant

Wide SumOf(Wide x, Wide y, Wide z) {
  constexpr int kOverlap = 150;  // a sum of two numbers of 48 bits is exact within it
  const auto below = [](const Wide& a, const Wide& b) {
    return a.IsZero() || (!b.IsZero() && (Binade(a) < Binade(b) ||
                                          (Binade(a) == Binade(b) && a.limbs[3] < b.limbs[3])));
  };
  if (below(x, y)) std::swap(x, y);
  if (below(y, z)) std::swap(y, z);
  if (below(x, y)) std::swap(x, y);
  const bool far = !y.IsZero() && Binade(x) - Binade(y) > kOverlap;
  return far ? Sum(x, Sum(y, z)) : Sum(Sum(x, y), z);
}

Unrounded SumOfTerms(const Term& x, const Term& y, const Term& z, const Divisor& d) {
  bool infinite[2] = {false, false};
  for (const Term* term : {&x, &y, &z}) {
    if (IsNan(term->special)) return kNan;
    if (IsInfinite(term->special)) infinite[term->special.negative ? 1 : 0] = true;
  }
  if (infinite[0] && infinite[1]) return kNan;
  if (infinite[0] || infinite[1]) return Infinite(infinite[1]);
  return Divided(SumOf(x.value, y.value, z.value), d);
}

Unrounded Angle(Op op, const Unrounded& y, const Unrounded& x, const Divisor& d) {
  if ((IsZero(x) && IsZero(y)) || (IsInfinite(x) && IsInfinite(y))) return kNan;
  // At x = -infinity the draft has pi for every finite y, also below zero.
  const bool left = IsInfinite(x) && x.negative;
  return exact::Angle(left ? WithSign(y, false) : y, x, op == Op::kArcTan2Pi, d).value;
}

Unrounded Clamped(const Unrounded& x, const Unrounded& low, const Unrounded& high) {
  if (IsNan(x) || IsNan(low) || IsNan(high)) return kNan;
  if (CompareExact(low, high) == Relation::kGreater) return kNan;
  if (CompareExact(x, low) == Relation::kLess) return low;
  return CompareExact(x, high) == Relation::kGreater ? high : x;
}

Unrounded CopySign(const Unrounded& x, const Unrounded& y) {
  return IsNan(x) || IsNan(y) ? kNan : WithSign(x, y.negative);
}

// op(x) / d, where d > 0 is finite.
Unrounded Over(Op op, std::span<const Unrounded> x, const Divisor& d) {
  if (const auto function = FunctionOf(op)) return OfFunction(op, *function, x[0], d);
  if (const auto extremum = ExtremumOf(op)) return Exactly(ChosenOf(*extremum, x[0], x[1]), d);
  const Term none(kZero);
  switch (op) {
    case Op::kConvert:
      return Exactly(x[0], d);
    case Op::kAbs:
      return Exactly(WithSign(x[0], false), d);
    case Op::kNegate:
      return Exactly(WithSign(x[0], !x[0].negative), d);
    case Op::kSqrt:
      return Root(x[0], d);
    case Op::kRecip:
      return Divide(kOne, x[0], d);
    case Op::kCopySign:
      return Exactly(CopySign(x[0], x[1]), d);
    case Op::kAdd:
      return SumOfTerms(Term(x[0]), Term(x[1]), none, d);
    case Op::kSubtract:
      return SumOfTerms(Term(x[0]), Term(WithSign(x[1], !x[1].negative)), none, d);
    case Op::kMultiply:
      return Multiply(x[0], x[1], d);
    case Op::kDivide:
      return Divide(x[0], x[1], d);
    case Op::kHypot:
      if (IsNan(x[0]) || IsNan(x[1])) return kNan;
      return exact::Hypotenuse(x[0], x[1], d).value;
    case Op::kArcTan2:
    case Op::kArcTan2Pi:
      return Angle(op, x[0], x[1], d);
    case Op::kFMA:
      return SumOfTerms(Term(x[0], x[1]), Term(x[2]), none, d);
    case Op::kFAA:
      return SumOfTerms(Term(x[0]), Term(x[1]), Term(x[2]), d);
    case Op::kClamp:
      return Exactly(Clamped(x[0], x[1], x[2]), d);
    default:
      NUMSIM_CHECK(false, "operation {}", static_cast<int>(op));
      return kNan;
  }
}

bool IsMinusZero(const FormatSpec& format, uint32_t code) {
  return code != 0 && code == format.SignBit() && Classify(format, code) == ValueClass::kZero;
}

}  // namespace

Unrounded Decode(const Operand& a) noexcept {
  Unrounded x = ExactValue(a.format, a.code);
  if (IsNan(x)) return kNan;
  if (IsZero(x)) return kZero;
  const int low = x.kind == NumberKind::kFinite ? std::countr_zero(x.significand) : 0;
  x.significand >>= low;
  x.exponent += low;
  return x;
}

Unrounded Decode(const ScaledOperand& a) noexcept {
  return Product(Decode(a.scale), Decode(a.element));
}

Unrounded Product(const Unrounded& x, const Unrounded& y) noexcept {
  Unrounded product = exact::Product(x, y).value;
  if (IsZero(product)) return kZero;
  return product;
}

Unrounded Result(Op op, std::span<const Unrounded> x, const Unrounded& scale) noexcept {
  if (IsNan(scale)) return kNan;
  const bool has_divisor = scale.kind == NumberKind::kFinite && !IsZero(scale);
  Unrounded result = Over(op, x, has_divisor ? DivisorOf(scale) : Divisor{});
  if (IsNan(result)) return kNan;
  if (IsZero(result) || IsZero(scale)) return kZero;
  result.negative = result.negative != scale.negative;
  return IsInfinite(scale) ? SignOf(result.negative) : result;
}

uint32_t Project(const Unrounded& x, const EncodePlan& to, uint32_t random) noexcept {
  const FormatSpec& format = to.format;
  const RoundingMode mode = to.rounding.mode;
  const bool none = to.overflow == Overflow::kNonsaturate;
  const bool below = x.negative && !IsNan(x) && !IsZero(x) && !format.IsSigned();
  if (below && IsInfinite(x) && to.overflow == Overflow::kPropagate) return 0;
  if (below && !IsInfinite(x) && none &&
      (mode == RoundingMode::kTowardZero || mode == RoundingMode::kUp)) {
    return 0;
  }
  const Rounded rounded = EncodeUnrounded(to, IsNan(x) ? kNan : x, random);
  const bool overflow = x.kind == NumberKind::kFinite && (rounded.flags & kOverflow) != 0;
  if (overflow && none && mode == RoundingMode::kToOdd && format.IsSigned() &&
      format.HasInfinity()) {
    return format.InfinityCode() | (x.negative ? format.SignBit() : 0);
  }
  return IsMinusZero(format, rounded.code) ? 0 : rounded.code;
}

}  // namespace numsim::p3109
