// Arithmetic on numbers with a scale each, rounded once [P3109]: what a block operation does to one
// pair of elements. The draft asks for it with scales of binary8p1uf; here a scale may be of any
// format and precision.
//
// The value of an operand is scale * element, exact. A NaN scale or element gives NaN; zero times
// infinity gives NaN and kInvalid. Zeros have the signs that arith.h describes for the products and
// their sum: [P3109] knows no -0, and its formats have none.
//
// As implemented here; the draft's own text was not available. The meaning was taken from public
// formalisations of the drafts [P3109-Imandra].
#pragma once

#include <cstdint>

#include "numsim/arith/arith.h"

namespace numsim {

struct ScaledOperand {
  Operand scale;
  Operand element;
};

Rounded ScaledAdd(const ScaledOperand& a,
                  const ScaledOperand& b,
                  const EncodePlan& to,
                  uint32_t random = 0) noexcept;
Rounded ScaledSubtract(const ScaledOperand& a,
                       const ScaledOperand& b,
                       const EncodePlan& to,
                       uint32_t random = 0) noexcept;
Rounded ScaledMultiply(const ScaledOperand& a,
                       const ScaledOperand& b,
                       const EncodePlan& to,
                       uint32_t random = 0) noexcept;

}  // namespace numsim
