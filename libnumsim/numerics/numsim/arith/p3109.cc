#include "numsim/arith/p3109.h"

#include <algorithm>
#include <array>

#include "numsim/arith/internal/deliver.h"
#include "numsim/arith/internal/p3109_exact.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::p3109 {
namespace {

constexpr size_t kMostOperands = 3;

template <typename T>
uint32_t ComputeOf(Op op,
                   std::span<const T> operands,
                   const Unrounded& scale,
                   const EncodePlan& to,
                   uint32_t random) {
  std::array<Unrounded, kMostOperands> x;
  for (size_t i = 0; i < operands.size(); ++i) x[i] = Decode(operands[i]);
  return Project(Result(op, std::span(x).first(operands.size()), scale), to, random);
}

ValueClass ValueClassOf(const Operand& a) { return Classify(a.format, a.code); }

bool IsNegative(const Operand& a) {
  const Unrounded x = Decode(a);
  return x.negative;
}

uint32_t Next(const Operand& a, bool up) {
  const uint32_t code = (up ? NextUp(a) : NextDown(a)).code;
  return code == a.code && a.format.HasNan() ? a.format.NanCode() : code;
}

Rounded InvalidResult(const EncodePlan& to, uint32_t random) {
  return Deliver({NumberKind::kNan, false, 0, 0}, kInvalid, to, random);
}

}  // namespace

uint32_t Compute(Op op,
                 std::span<const Operand> operands,
                 const EncodePlan& to,
                 uint32_t random) noexcept {
  return ComputeOf(op, operands, kOne, to, random);
}

uint32_t Compute(Op op,
                 std::span<const ScaledOperand> operands,
                 const Operand& scale,
                 const EncodePlan& to,
                 uint32_t random) noexcept {
  return ComputeOf(op, operands, Decode(scale), to, random);
}

bool Holds(Comparison comparison, const Operand& a, const Operand& b) noexcept {
  const Relation relation = Compare(a, b);
  switch (comparison) {
    case Comparison::kLess:
      return relation == Relation::kLess;
    case Comparison::kLessEqual:
      return relation == Relation::kLess || relation == Relation::kEqual;
    case Comparison::kEqual:
      return relation == Relation::kEqual;
    case Comparison::kGreaterEqual:
      return relation == Relation::kGreater || relation == Relation::kEqual;
    case Comparison::kGreater:
      break;
  }
  return relation == Relation::kGreater;
}

bool TotalOrder(const Operand& a, const Operand& b) noexcept {
  if (IsNan(a)) return true;
  return Holds(Comparison::kLessEqual, a, b);
}

Class ClassOf(const Operand& a) noexcept {
  const bool negative = IsNegative(a);
  switch (ValueClassOf(a)) {
    case ValueClass::kZero:
      return Class::kZero;
    case ValueClass::kSubnormal:
      return negative ? Class::kNegativeSubnormal : Class::kPositiveSubnormal;
    case ValueClass::kNormal:
    case ValueClass::kUnused:
      return negative ? Class::kNegativeNormal : Class::kPositiveNormal;
    case ValueClass::kInfinity:
      return negative ? Class::kNegativeInfinity : Class::kPositiveInfinity;
    case ValueClass::kNan:
      break;
  }
  return Class::kNan;
}

bool IsZero(const Operand& a) noexcept { return ValueClassOf(a) == ValueClass::kZero; }

bool IsOne(const Operand& a) noexcept {
  const Unrounded x = Decode(a);
  return x.kind == NumberKind::kFinite && !x.negative && x.significand == 1 && x.exponent == 0;
}

bool IsNan(const Operand& a) noexcept { return ValueClassOf(a) == ValueClass::kNan; }

bool IsInfinite(const Operand& a) noexcept { return ValueClassOf(a) == ValueClass::kInfinity; }

bool IsFinite(const Operand& a) noexcept { return !IsNan(a) && !IsInfinite(a); }

bool IsSignMinus(const Operand& a) noexcept { return IsNegative(a); }

bool IsNormal(const Operand& a) noexcept {
  const Class c = ClassOf(a);
  return c == Class::kNegativeNormal || c == Class::kPositiveNormal;
}

bool IsSubnormal(const Operand& a) noexcept { return ValueClassOf(a) == ValueClass::kSubnormal; }

uint32_t NextGreaterThan(const Operand& a) noexcept { return Next(a, true); }

uint32_t NextLessThan(const Operand& a) noexcept { return Next(a, false); }

FormatProperties PropertiesOf(const FormatSpec& format) noexcept {
  const uint32_t first_normal = uint32_t{1} << format.mantissa_bits;
  const uint32_t nan = format.HasNan() ? format.NanCode() : 0;
  const uint32_t max = format.MaxFiniteCode();
  FormatProperties p;
  p.bitwidth = format.Bits();
  p.precision = format.mantissa_bits + 1;
  p.is_signed = format.IsSigned();
  p.is_extended = format.HasInfinity();
  p.exponent_bitwidth = format.exponent_bits;
  p.trailing_significand_bitwidth = format.mantissa_bits;
  p.exponent_bias = format.bias;
  p.max_finite = max;
  p.min_finite = format.IsSigned() ? max | format.SignBit() : 0;
  p.min_positive = 1;
  p.max_subnormal = format.mantissa_bits == 0 ? nan : std::min(first_normal - 1, max);
  p.min_normal = first_normal > max ? nan : first_normal;
  return p;
}

Rounded Divide(const Operand& a, const Operand& b, const EncodePlan& to, uint32_t random) noexcept {
  if (IsZero(b) && !IsNan(a)) return InvalidResult(to, random);
  return numsim::Divide(a, b, to, random);
}

Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random) noexcept {
  if (IsZero(a)) return InvalidResult(to, random);
  return numsim::Reciprocal(a, to, random);
}

}  // namespace numsim::p3109
