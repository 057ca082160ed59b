// The sums of matrix units, for accumulator.cc: what each kind does stands in accumulator.h.
// Each returns the bits of a float32. Requires vectors of equal size and rule.chunk >= 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/arith/accumulator.h"

namespace numsim {

uint32_t AlignedSum(const Accumulator& rule, const DotOperand& a, const DotOperand& b) noexcept;
uint32_t AlignedDownSum(const Accumulator& rule, const DotOperand& a, const DotOperand& b) noexcept;
uint32_t ExactChunkSum(const Accumulator& rule, const DotOperand& a, const DotOperand& b) noexcept;
uint32_t FlushedPairSum(const Accumulator& rule, const DotOperand& a, const DotOperand& b) noexcept;

}  // namespace numsim
