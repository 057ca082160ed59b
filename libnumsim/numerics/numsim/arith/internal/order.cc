#include "numsim/arith/internal/order.h"

#include <bit>

#include "numsim/arith/arith.h"
#include "numsim/arith/internal/deliver.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

Unrounded Value(const Operand& a) { return ExactValue(a.format, a.code); }

bool IsNan(const Unrounded& x) { return x.kind == NumberKind::kNan; }
bool IsInfinite(const Unrounded& x) { return x.kind == NumberKind::kInfinity; }
bool IsZero(const Unrounded& x) { return x.kind == NumberKind::kFinite && x.significand == 0; }

template <typename T>
Relation RelationOf(T a, T b) {
  return a < b ? Relation::kLess : a > b ? Relation::kGreater : Relation::kEqual;
}

Relation Reversed(Relation relation) {
  if (relation == Relation::kLess) return Relation::kGreater;
  if (relation == Relation::kGreater) return Relation::kLess;
  return relation;
}

// Compares |a| and |b|. Requires that neither is NaN.
Relation CompareMagnitudes(const Unrounded& a, const Unrounded& b) {
  if (IsInfinite(a) || IsInfinite(b)) return RelationOf(IsInfinite(a), IsInfinite(b));
  if (IsZero(a) || IsZero(b)) return RelationOf(!IsZero(a), !IsZero(b));
  const int top_a = a.exponent + static_cast<int>(std::bit_width(a.significand));
  const int top_b = b.exponent + static_cast<int>(std::bit_width(b.significand));
  if (top_a != top_b) return RelationOf(top_a, top_b);
  return RelationOf(a.significand << std::countl_zero(a.significand),
                    b.significand << std::countl_zero(b.significand));
}

// Compares a and b in the order in which -0 is less than +0. Requires that neither is NaN.
Relation CompareWithSignedZeros(const Unrounded& a, const Unrounded& b) {
  if (a.negative != b.negative) return a.negative ? Relation::kLess : Relation::kGreater;
  const Relation magnitudes = CompareMagnitudes(a, b);
  return a.negative ? Reversed(magnitudes) : magnitudes;
}

// The properties that distinguish the ten extrema.
struct Kind {
  bool maximum = false;
  bool magnitude = false;       // compares magnitudes first
  bool prefers_number = false;  // a number wins over a NaN
  bool prefers_finite = false;  // a finite number wins over an infinity
};

Kind KindOf(Extremum extremum) {
  switch (extremum) {
    case Extremum::kMinimum:
      return {};
    case Extremum::kMaximum:
      return {.maximum = true};
    case Extremum::kMinimumNumber:
      return {.prefers_number = true};
    case Extremum::kMaximumNumber:
      return {.maximum = true, .prefers_number = true};
    case Extremum::kMinimumMagnitude:
      return {.magnitude = true};
    case Extremum::kMaximumMagnitude:
      return {.maximum = true, .magnitude = true};
    case Extremum::kMinimumMagnitudeNumber:
      return {.magnitude = true, .prefers_number = true};
    case Extremum::kMaximumMagnitudeNumber:
      return {.maximum = true, .magnitude = true, .prefers_number = true};
    case Extremum::kMinimumFinite:
      return {.prefers_number = true, .prefers_finite = true};
    case Extremum::kMaximumFinite:
      return {.maximum = true, .prefers_number = true, .prefers_finite = true};
  }
  return {};
}

Unrounded Chosen(const Kind& kind, const Unrounded& a, const Unrounded& b) {
  if (IsNan(a) || IsNan(b)) {
    if (kind.prefers_number && !IsNan(a)) return a;
    if (kind.prefers_number && !IsNan(b)) return b;
    return {NumberKind::kNan, false, 0, 0};
  }
  if (kind.prefers_finite && IsInfinite(a) != IsInfinite(b)) return IsInfinite(a) ? b : a;
  Relation relation = kind.magnitude ? CompareMagnitudes(a, b) : Relation::kEqual;
  if (relation == Relation::kEqual) relation = CompareWithSignedZeros(a, b);
  const bool a_wins = relation == (kind.maximum ? Relation::kGreater : Relation::kLess);
  return a_wins ? a : b;
}

bool IsNegative(const FormatSpec& format, uint32_t code) { return (code & format.SignBit()) != 0; }

// Returns the magnitude code of a code that is not NaN. For the unused code of a two's complement
// grid it is one above the largest.
uint32_t MagnitudeOf(const FormatSpec& format, uint32_t code) {
  if (format.sign == Sign::kTwosComplement && IsNegative(format, code)) {
    return (0u - code) & format.CodeMask();
  }
  return code & ~format.SignBit();
}

// Returns the code with a given sign and magnitude code. A negative zero becomes +0 if the format
// has no -0.
uint32_t CodeOf(const FormatSpec& format, bool negative, uint32_t magnitude) {
  if (!negative) return magnitude;
  if (format.sign == Sign::kTwosComplement) return (0u - magnitude) & format.CodeMask();
  if (magnitude == 0 && format.zero != Zero::kSigned) return 0;
  return format.SignBit() | magnitude;
}

// Returns the upper or lower neighbour of a code that is not NaN.
uint32_t Neighbour(const FormatSpec& format, uint32_t code, bool up) {
  bool negative = IsNegative(format, code);
  uint32_t magnitude = MagnitudeOf(format, code);
  // Flushed subnormals are zeros, so the numbers beside zero are the smallest normals.
  const uint32_t first = format.flush_subnormals ? uint32_t{1} << format.mantissa_bits : 1;
  if (magnitude < first) magnitude = 0;
  const bool is_zero = magnitude == 0 && format.zero != Zero::kNone;
  if (is_zero && format.IsSigned()) negative = !up;  // either zero steps away from zero
  const bool outwards = negative != up;
  if (outwards) {
    const uint32_t last =
        format.HasInfinity() ? format.InfinityCode() : format.LastFiniteCode(negative);
    if (magnitude >= last) return code;
    return CodeOf(format, negative, magnitude == 0 && is_zero ? first : magnitude + 1);
  }
  if (magnitude == 0) return code;
  return CodeOf(
      format, negative, magnitude == first && format.flush_subnormals ? 0 : magnitude - 1);
}

Rounded Next(const Operand& a, bool up) {
  if (Classify(a.format, a.code) == ValueClass::kNan) {
    return {a.format.NanCode(), SignalingFlags(a)};
  }
  return {Neighbour(a.format, a.code, up), 0};
}

}  // namespace

Relation CompareExact(const Unrounded& x, const Unrounded& y) noexcept {
  if (IsNan(x) || IsNan(y)) return Relation::kUnordered;
  if (IsZero(x) && IsZero(y)) return Relation::kEqual;
  return CompareWithSignedZeros(x, y);
}

Unrounded ChosenOf(Extremum extremum, const Unrounded& a, const Unrounded& b) noexcept {
  return Chosen(KindOf(extremum), a, b);
}

Relation Compare(const Operand& a, const Operand& b) noexcept {
  return CompareExact(Value(a), Value(b));
}

Truth Holds(Predicate predicate, const Operand& a, const Operand& b) noexcept {
  const Relation relation = Compare(a, b);
  const bool unordered = relation == Relation::kUnordered;
  const bool less = relation == Relation::kLess, equal = relation == Relation::kEqual;
  const Flags quiet = SignalingFlags(a) | SignalingFlags(b);
  const Flags signaling = unordered ? kInvalid : Flags{0};
  switch (predicate) {
    case Predicate::kEqual:
      return {equal, quiet};
    case Predicate::kLess:
      return {less, signaling};
    case Predicate::kLessEqual:
      return {less || equal, signaling};
    case Predicate::kEqualSignaling:
      return {equal, signaling};
    case Predicate::kLessQuiet:
      return {less, quiet};
    case Predicate::kLessEqualQuiet:
      return {less || equal, quiet};
    case Predicate::kUnordered:
      return {unordered, quiet};
  }
  return {};
}

Rounded Choose(Extremum extremum,
               const Operand& a,
               const Operand& b,
               const EncodePlan& to,
               uint32_t random) noexcept {
  const Unrounded chosen = ChosenOf(extremum, Value(a), Value(b));
  return Deliver(chosen, SignalingFlags(a) | SignalingFlags(b), to, random);
}

Rounded NextUp(const Operand& a) noexcept { return Next(a, true); }

Rounded NextDown(const Operand& a) noexcept { return Next(a, false); }

Rounded Negate(const Operand& a) noexcept {
  const FormatSpec& format = a.format;
  const ValueClass value_class = Classify(format, a.code);
  if (!format.IsSigned()) {
    if (value_class == ValueClass::kNan || value_class == ValueClass::kZero) return {a.code, 0};
    return {format.HasNan() ? format.NanCode() : 0, kInvalid};
  }
  // The most negative number of two's complement has no positive counterpart.
  if (format.sign == Sign::kTwosComplement && a.code == format.SignBit()) {
    return {format.MaxFiniteCode(), static_cast<Flags>(kOverflow | kInexact)};
  }
  if (value_class == ValueClass::kNan) {
    return {format.NanHasSign() ? a.code ^ format.SignBit() : a.code, 0};
  }
  return {CodeOf(format, !IsNegative(format, a.code), MagnitudeOf(format, a.code)), 0};
}

Rounded Absolute(const Operand& a) noexcept {
  const FormatSpec& format = a.format;
  if (!format.IsSigned() || !IsNegative(format, a.code)) return {a.code, 0};
  if (Classify(format, a.code) == ValueClass::kNan && !format.NanHasSign()) return {a.code, 0};
  if (format.sign == Sign::kTwosComplement) return Negate(a);
  return {a.code & ~format.SignBit(), 0};
}

}  // namespace numsim
