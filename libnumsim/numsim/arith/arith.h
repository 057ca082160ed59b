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

// Comparisons, minima and maxima, neighbours, sign operations. No rounding, but for a minimum or
// maximum delivered in another format.

enum class Relation : uint8_t { kLess, kEqual, kGreater, kUnordered };

// The relation of two values, which may be of different formats. -0 equals +0; a NaN is unordered
// with everything.
Relation Compare(const Operand& a, const Operand& b) noexcept;

struct Truth {
  bool value = false;
  Flags flags = 0;
};
// [IEEE754] 5.11. The signalling ones raise kInvalid for any NaN, the quiet ones for signalling
// NaNs.
enum class Predicate : uint8_t {
  kEqual,           // eq: quiet
  kLess,            // lt: signalling
  kLessEqual,       // le: signalling
  kEqualSignaling,  // eq_signaling
  kLessQuiet,       // lt_quiet
  kLessEqualQuiet,  // le_quiet
  kUnordered,       // unordered: quiet
};
Truth Holds(Predicate predicate, const Operand& a, const Operand& b) noexcept;

// [IEEE754] 9.6 and [P3109], which agree where both define an operation:
//   Number     one NaN: the other operand. All others but Finite: NaN.
//   Magnitude  |a| against |b|; where these are equal, as without Magnitude.
//   Finite     [P3109] alone: one NaN: the other operand, be it infinite. One infinity: the other,
//              finite operand. Two infinities or two finite numbers: as without Finite.
// Two NaNs give NaN. -0 is less than +0. The rules of [P3109] are as implemented here from public
// formalisations of the drafts [P3109-Imandra]; the draft's own text was not available.
enum class Extremum : uint8_t {
  kMinimum,
  kMaximum,
  kMinimumNumber,
  kMaximumNumber,
  kMinimumMagnitude,
  kMaximumMagnitude,
  kMinimumMagnitudeNumber,
  kMaximumMagnitudeNumber,
  kMinimumFinite,
  kMaximumFinite,
};
Rounded Choose(Extremum extremum,
               const Operand& a,
               const Operand& b,
               const EncodePlan& to,
               uint32_t random = 0) noexcept;

// The least value of a's format that compares greater, the greatest that compares less [IEEE754]
// 5.3.1. NextUp of the largest value: infinity if the format has it, else the value itself; of
// -infinity: the most negative finite number; of the negative number next to zero: -0 if the format
// has it. NextDown mirrors this. A NaN gives the canonical NaN, sign bit clear, and kInvalid if it
// is signalling. Unsigned formats: NextDown of the least value is the value itself. The unused code
// of a two's complement grid lies below the most negative number and is no one's neighbour.
Rounded NextUp(const Operand& a) noexcept;
Rounded NextDown(const Operand& a) noexcept;

// Sign operations on the code: no NaN raises a flag, and it keeps its payload. A format without -0
// keeps +0, one without signs of NaN its NaN. An unsigned format has no negation: Negate of
// anything but zero and NaN is NaN (kInvalid), or the least value where it has no NaN. The unused
// code of a two's complement grid gives the largest value (kOverflow and kInexact).
Rounded Negate(const Operand& a) noexcept;
Rounded Absolute(const Operand& a) noexcept;

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

// Integers: conversion from and to them, and rounding to an integral value.

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
