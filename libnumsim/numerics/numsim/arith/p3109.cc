#include "numsim/arith/p3109.h"

#include "numsim/arith/internal/deliver.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::p3109 {
namespace {

bool IsZero(const Operand& a) { return Classify(a.format, a.code) == ValueClass::kZero; }
bool IsNan(const Operand& a) { return Classify(a.format, a.code) == ValueClass::kNan; }

Rounded InvalidResult(const EncodePlan& to, uint32_t random) {
  return Deliver({NumberKind::kNan, false, 0, 0}, kInvalid, to, random);
}

}  // namespace

Rounded Divide(const Operand& a, const Operand& b, const EncodePlan& to, uint32_t random) noexcept {
  if (IsZero(b) && !IsNan(a)) return InvalidResult(to, random);
  return numsim::Divide(a, b, to, random);
}

Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random) noexcept {
  if (IsZero(a)) return InvalidResult(to, random);
  return numsim::Reciprocal(a, to, random);
}

}  // namespace numsim::p3109
