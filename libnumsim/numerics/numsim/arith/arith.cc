#include "numsim/arith/arith.h"

#include <algorithm>

#include "numsim/arith/internal/deliver.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/arith/shared/exact_sum.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

Unrounded Value(const Operand& a) { return ExactValue(a.format, a.code); }

Rounded Deliver(const exact::Outcome& outcome,
                Flags signaling,
                const EncodePlan& to,
                uint32_t random) {
  return numsim::Deliver(outcome.value, outcome.flags | signaling, to, random);
}

}  // namespace

bool IsSignalingNan(const Operand& a) noexcept {
  const FormatSpec& format = a.format;
  if (format.nan != Nan::kIeee || format.mantissa_bits < 2) return false;
  const uint32_t quiet_bit = uint32_t{1} << (format.mantissa_bits - 1);
  return Classify(format, a.code) == ValueClass::kNan && (a.code & quiet_bit) == 0;
}

Rounded Add(const Operand& a, const Operand& b, const EncodePlan& to, uint32_t random) noexcept {
  const exact::Outcome sum = exact::Sum(Value(a), Value(b), ZeroSumIsNegative(to.rounding.mode));
  return Deliver(sum, SignalingFlags(a) | SignalingFlags(b), to, random);
}

Rounded Subtract(const Operand& a,
                 const Operand& b,
                 const EncodePlan& to,
                 uint32_t random) noexcept {
  const exact::Outcome difference =
      exact::Sum(Value(a), exact::Negated(Value(b)), ZeroSumIsNegative(to.rounding.mode));
  return Deliver(difference, SignalingFlags(a) | SignalingFlags(b), to, random);
}

Rounded Multiply(const Operand& a,
                 const Operand& b,
                 const EncodePlan& to,
                 uint32_t random) noexcept {
  const exact::Outcome product = exact::Product(Value(a), Value(b));
  return Deliver(product, SignalingFlags(a) | SignalingFlags(b), to, random);
}

Rounded Divide(const Operand& a, const Operand& b, const EncodePlan& to, uint32_t random) noexcept {
  const exact::Outcome quotient = exact::Quotient(Value(a), Value(b));
  return Deliver(quotient, SignalingFlags(a) | SignalingFlags(b), to, random);
}

Rounded FusedMultiplyAdd(const Operand& a,
                         const Operand& b,
                         const Operand& c,
                         const EncodePlan& to,
                         uint32_t random) noexcept {
  exact::Outcome product = exact::Product(Value(a), Value(b));
  exact::Outcome sum = exact::Sum(product.value, Value(c), ZeroSumIsNegative(to.rounding.mode));
  sum.flags |= product.flags;
  return Deliver(sum, SignalingFlags(a) | SignalingFlags(b) | SignalingFlags(c), to, random);
}

Rounded FusedAddAdd(const Operand& a,
                    const Operand& b,
                    const Operand& c,
                    const EncodePlan& to,
                    uint32_t random) noexcept {
  ExactSum sum;
  for (const Operand* x : {&a, &b, &c}) sum.Add(Value(*x));
  const bool nan = Value(a).kind == NumberKind::kNan || Value(b).kind == NumberKind::kNan ||
                   Value(c).kind == NumberKind::kNan;
  const Flags invalid = sum.Invalid() && !nan ? kInvalid : Flags{0};
  return Deliver({sum.Result(ZeroSumIsNegative(to.rounding.mode)), invalid},
                 SignalingFlags(a) | SignalingFlags(b) | SignalingFlags(c),
                 to,
                 random);
}

Rounded SquareRoot(const Operand& a, const EncodePlan& to, uint32_t random) noexcept {
  return Deliver(exact::Root(Value(a)), SignalingFlags(a), to, random);
}

Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random) noexcept {
  const Unrounded one{NumberKind::kFinite, false, 0, 1};
  return Deliver(exact::Quotient(one, Value(a)), SignalingFlags(a), to, random);
}

Rounded Remainder(const Operand& a,
                  const Operand& b,
                  const EncodePlan& to,
                  uint32_t random) noexcept {
  exact::Outcome remainder = exact::Remainder(Value(a), Value(b));
  if (remainder.value.significand == 0 && remainder.value.kind == NumberKind::kFinite) {
    remainder.value.negative = Value(a).negative;
  }
  return Deliver(remainder, SignalingFlags(a) | SignalingFlags(b), to, random);
}

Rounded Convert(const Operand& a, const EncodePlan& to, uint32_t random) noexcept {
  return Deliver({Value(a), 0}, SignalingFlags(a), to, random);
}

Rounded ScaleByPowerOfTwo(const Operand& a,
                          int64_t n,
                          const EncodePlan& to,
                          uint32_t random) noexcept {
  constexpr int64_t kFar = int64_t{1} << 16;
  Unrounded x = Value(a);
  if (x.kind == NumberKind::kNan) x.negative = false;
  x.exponent += static_cast<int>(std::clamp(n, -kFar, kFar));
  return Deliver({x, 0}, SignalingFlags(a), to, random);
}

}  // namespace numsim
