// Integers: conversion from and to them, and rounding to an integral value.
#pragma once

#include <cstdint>

#include "numsim/arith/arith.h"

namespace numsim {

// Zero gives +0.
Rounded FromInt64(int64_t value, const EncodePlan& to, uint32_t random = 0) noexcept;
Rounded FromUint64(uint64_t value, const EncodePlan& to, uint32_t random = 0) noexcept;

struct IntegerType {
  int bits = 32;  // 1..64
  bool is_signed = true;
};
struct RoundedInteger {
  uint64_t bits = 0;  // the low `type.bits` bits, two's complement; the rest is zero
  Flags flags = 0;
};
// The value rounded to an integer, in any mode; kToOdd takes the odd neighbour. Out of range (after
// rounding) and infinite: the nearest end of the range; NaN: the largest integer; these raise
// kInvalid and not kInexact. Requires 1 <= type.bits <= 64.
RoundedInteger ToInteger(const Operand& a,
                         IntegerType type,
                         const Rounding& rounding,
                         uint32_t random = 0) noexcept;

// The nearest integral value in the mode `rounding`, then delivered through `to` (which rounds
// again only if its format cannot hold it, with the same `random`). Keeps the sign of zero results.
// Sets kInexact when the value changed.
Rounded RoundToIntegral(const Operand& a,
                        const Rounding& rounding,
                        const EncodePlan& to,
                        uint32_t random = 0) noexcept;

}  // namespace numsim
