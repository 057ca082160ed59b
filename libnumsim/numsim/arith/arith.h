// Correctly rounded arithmetic on codes: every result is the exact value rounded once.
//
// Operands may be of different formats, and the result of a third: `to` holds its format, rounding
// mode, overflow policy and tininess. `random` is R of a stochastic mode, as in EncodeF32.
//
// Common rules
//   NaN        A NaN operand or an invalid operation gives the canonical NaN of the result's format
//              with the sign bit clear (a format without NaN: its largest value, and kInvalid).
//              Signalling NaN operands raise kInvalid, see flags.h.
//   Infinity   As in [IEEE754]; a result that is exactly infinite becomes what the overflow policy
//              says for infinite inputs.
//   Zero       The sign of an exact zero sum is that of both addends, or + where they differ (- in
//              mode rtn); that of a product or quotient is the XOR. Formats without -0 give +0.
// Environment-independent: integers only.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/flags.h"

namespace numsim {

// A code and what it means. Requires code <= format.CodeMask().
struct Operand {
  FormatSpec format;
  uint32_t code = 0;
};

// Whether the operand is a NaN that raises kInvalid.
bool IsSignalingNan(const Operand& a) noexcept;

Rounded Add(const Operand& a, const Operand& b, const EncodePlan& to, uint32_t random = 0) noexcept;
Rounded Subtract(const Operand& a,
                 const Operand& b,
                 const EncodePlan& to,
                 uint32_t random = 0) noexcept;
Rounded Multiply(const Operand& a,
                 const Operand& b,
                 const EncodePlan& to,
                 uint32_t random = 0) noexcept;
// x / 0 with x finite and not zero: infinity and kDivideByZero. 0 / 0 and inf / inf: invalid.
Rounded Divide(const Operand& a,
               const Operand& b,
               const EncodePlan& to,
               uint32_t random = 0) noexcept;
// a * b + c. inf * 0 + NaN is NaN and invalid.
Rounded FusedMultiplyAdd(const Operand& a,
                         const Operand& b,
                         const Operand& c,
                         const EncodePlan& to,
                         uint32_t random = 0) noexcept;
// a + b + c, rounded once [P3109]. An exact zero sum: -0 only if all three are -0, or in mode rtn
// if not all are +0.
Rounded FusedAddAdd(const Operand& a,
                    const Operand& b,
                    const Operand& c,
                    const EncodePlan& to,
                    uint32_t random = 0) noexcept;
// sqrt(-0) is -0; of other negative numbers invalid.
Rounded SquareRoot(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;
// 1 / a.
Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;
// a - n b where n is the integer nearest to a / b, ties to even [IEEE754] 5.3.1. Zero results have
// the sign of a. Infinite a or zero b: invalid; infinite b: a.
Rounded Remainder(const Operand& a,
                  const Operand& b,
                  const EncodePlan& to,
                  uint32_t random = 0) noexcept;
// The value of `a` in another format. Unlike the rest it keeps the sign of a NaN, as EncodeF32.
Rounded Convert(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;
// a * 2^n. Any n: beyond +-2^16 the result no longer changes.
Rounded ScaleByPowerOfTwo(const Operand& a,
                          int64_t n,
                          const EncodePlan& to,
                          uint32_t random = 0) noexcept;

}  // namespace numsim
