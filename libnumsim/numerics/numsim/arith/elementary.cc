#include "numsim/arith/elementary.h"

#include "numsim/arith/internal/deliver.h"
#include "numsim/arith/shared/exact_elementary.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

std::string_view ToString(ElementaryFunction function) {
  for (const ElementaryName& row : kElementaryNames) {
    if (row.function == function) return row.name;
  }
  return {};
}

Rounded Elementary(ElementaryFunction function,
                   const Operand& a,
                   const EncodePlan& to,
                   uint32_t random) noexcept {
  const exact::Outcome outcome = exact::Elementary(function, ExactValue(a.format, a.code));
  return Deliver(outcome.value, outcome.flags | SignalingFlags(a), to, random);
}

Rounded Hypotenuse(const Operand& a,
                   const Operand& b,
                   const EncodePlan& to,
                   uint32_t random) noexcept {
  const exact::Outcome outcome =
      exact::Hypotenuse(ExactValue(a.format, a.code), ExactValue(b.format, b.code));
  return Deliver(outcome.value, SignalingFlags(a) | SignalingFlags(b), to, random);
}

namespace {

Rounded RoundedAngle(const Operand& a,
                     const Operand& b,
                     bool of_pi,
                     const EncodePlan& to,
                     uint32_t random) noexcept {
  const exact::Outcome outcome =
      exact::Angle(ExactValue(a.format, a.code), ExactValue(b.format, b.code), of_pi);
  return Deliver(outcome.value, SignalingFlags(a) | SignalingFlags(b), to, random);
}

}  // namespace

Rounded Angle(const Operand& a, const Operand& b, const EncodePlan& to, uint32_t random) noexcept {
  return RoundedAngle(a, b, false, to, random);
}

Rounded AngleOverPi(const Operand& a,
                    const Operand& b,
                    const EncodePlan& to,
                    uint32_t random) noexcept {
  return RoundedAngle(a, b, true, to, random);
}

}  // namespace numsim
