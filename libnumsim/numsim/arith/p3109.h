// Operations that [P3109] defines otherwise than [IEEE754]. The rest of its minimal set is that of
// arith.h, order.h and scaled.h.
//
// As implemented here; the draft's own text was not available. The rules were taken from public
// formalisations of the drafts [P3109-Imandra].
#pragma once

#include <cstdint>

#include "numsim/arith/arith.h"

namespace numsim::p3109 {

// As Divide and Reciprocal of arith.h, but that a zero divisor gives NaN and kInvalid for every
// dividend: a zero without sign has no side from which to reach infinity.
Rounded Divide(const Operand& a,
               const Operand& b,
               const EncodePlan& to,
               uint32_t random = 0) noexcept;
Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;

}  // namespace numsim::p3109
