// Operations that [P3109] defines differently from [IEEE754]. The other operations of its minimal
// set are those of arith/arith.h.
//
// The rules were taken from public formalisations of the drafts [P3109-Imandra]; the draft's own
// text was not available.
#pragma once

#include <cstdint>

#include "numsim/arith/arith.h"

namespace numsim::p3109 {

// Same as numsim::Divide and numsim::Reciprocal, except that a zero divisor gives NaN and kInvalid
// for every dividend other than NaN: a zero without a sign does not determine the sign of an
// infinity.
Rounded Divide(const Operand& a,
               const Operand& b,
               const EncodePlan& to,
               uint32_t random = 0) noexcept;
Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;

}  // namespace numsim::p3109
