// The operations of [P3109] on exact numbers, and their projection.
#pragma once

#include <span>

#include "numsim/arith/p3109.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::p3109 {

// Returns the exact value of a code; -0 is 0.
Unrounded Decode(const Operand& a) noexcept;
// Returns the exact product of scale and element.
Unrounded Decode(const ScaledOperand& a) noexcept;

// Returns x * y by the draft. Exact if the significands have up to 62 bits together.
Unrounded Product(const Unrounded& x, const Unrounded& y) noexcept;

// Returns op(x) / scale, exact or rounded to odd. Requires numbers that Decode returned.
Unrounded Result(Op op, std::span<const Unrounded> x, const Unrounded& scale) noexcept;

// Rounds and saturates.
uint32_t Project(const Unrounded& x, const EncodePlan& to, uint32_t random) noexcept;

inline constexpr Unrounded kOne = {NumberKind::kFinite, false, 0, 1};

}  // namespace numsim::p3109
