#include "numsim/arith/arith.h"
#include "numsim/arith/internal/deliver.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

// Returns scale * element, which is exact because both have at most 24 significant bits.
exact::Outcome Value(const ScaledOperand& a) {
  const Unrounded scale = ExactValue(a.scale.format, a.scale.code);
  const Unrounded element = ExactValue(a.element.format, a.element.code);
  exact::Outcome value = exact::Product(scale, element);
  value.flags |= SignalingFlags(a.scale) | SignalingFlags(a.element);
  return value;
}

Rounded Sum(const exact::Outcome& a,
            const exact::Outcome& b,
            const EncodePlan& to,
            uint32_t random) {
  const bool zero_negative = ZeroSumIsNegative(to.rounding.mode);
  const exact::Outcome sum = exact::Sum(a.value, b.value, zero_negative);
  return Deliver(sum.value, a.flags | b.flags | sum.flags, to, random);
}

}  // namespace

Rounded ScaledAdd(const ScaledOperand& a,
                  const ScaledOperand& b,
                  const EncodePlan& to,
                  uint32_t random) noexcept {
  return Sum(Value(a), Value(b), to, random);
}

Rounded ScaledSubtract(const ScaledOperand& a,
                       const ScaledOperand& b,
                       const EncodePlan& to,
                       uint32_t random) noexcept {
  exact::Outcome subtrahend = Value(b);
  subtrahend.value = exact::Negated(subtrahend.value);
  return Sum(Value(a), subtrahend, to, random);
}

Rounded ScaledMultiply(const ScaledOperand& a,
                       const ScaledOperand& b,
                       const EncodePlan& to,
                       uint32_t random) noexcept {
  const exact::Outcome x = Value(a), y = Value(b);
  const exact::Outcome product = exact::Product(x.value, y.value);
  return Deliver(product.value, x.flags | y.flags | product.flags, to, random);
}

}  // namespace numsim
