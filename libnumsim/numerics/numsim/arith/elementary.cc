#include "numsim/arith/elementary.h"

#include "numsim/arith/internal/deliver.h"
#include "numsim/arith/shared/exact_elementary.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

std::string_view ToString(ElementaryFunction function) {
  switch (function) {
    case ElementaryFunction::kExp:
      return "exp";
    case ElementaryFunction::kExp2:
      return "exp2";
    case ElementaryFunction::kLog:
      return "log";
    case ElementaryFunction::kLog2:
      return "log2";
    case ElementaryFunction::kTanh:
      return "tanh";
    case ElementaryFunction::kSigmoid:
      return "sigmoid";
    case ElementaryFunction::kGelu:
      return "gelu";
    case ElementaryFunction::kGeluTanh:
      break;
  }
  return "gelu-tanh";
}

Rounded Elementary(ElementaryFunction function,
                   const Operand& a,
                   const EncodePlan& to,
                   uint32_t random) noexcept {
  const exact::Outcome outcome = exact::Elementary(function, ExactValue(a.format, a.code));
  return Deliver(outcome.value, outcome.flags | SignalingFlags(a), to, random);
}

}  // namespace numsim
