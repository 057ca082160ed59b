// Correctly rounded arithmetic on codes: every result is the exact value rounded once.
//
// The operands and the result may be of different formats. `to` holds the format, rounding mode,
// overflow policy and tininess of the result. `random` holds the random bits of a stochastic mode,
// as in EncodeF32.
//
// Common rules
//   NaN        A NaN operand or an invalid operation gives the canonical NaN of the result's format
//              with the sign bit clear (in a format without NaN: its largest value and kInvalid).
//              Signalling NaN operands raise kInvalid, see rounding/flags.h.
//   Infinity   As in [IEEE754]. The overflow policy treats an exactly infinite result like an
//              infinite input.
//   Zero       An exact zero sum has the sign of both addends, or + if their signs differ (- in
//              mode rtn). A zero product or quotient has the XOR of the operands' signs. Formats
//              without -0 give +0.
// The functions use only integers, so they do not depend on the floating-point environment.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/flags.h"

namespace numsim {

// A code and its format. Requires code <= format.CodeMask().
struct Operand {
  FormatSpec format = {};
  uint32_t code = 0;
};

// Returns true if the operand is a NaN that raises kInvalid.
bool IsSignalingNan(const Operand& a) noexcept;

// Return a + b, a - b and a * b, rounded once to the format of `to`. `random` is as in EncodeF32.
Rounded Add(const Operand& a, const Operand& b, const EncodePlan& to, uint32_t random = 0) noexcept;
Rounded Subtract(const Operand& a,
                 const Operand& b,
                 const EncodePlan& to,
                 uint32_t random = 0) noexcept;
Rounded Multiply(const Operand& a,
                 const Operand& b,
                 const EncodePlan& to,
                 uint32_t random = 0) noexcept;
// a / b. x / 0 with x finite and not zero gives infinity and kDivideByZero. 0 / 0 and inf / inf are
// invalid.
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
// a + b + c, rounded once [P3109]. An exact zero sum is -0 only if all three operands are -0, or in
// mode rtn if not all are +0.
Rounded FusedAddAdd(const Operand& a,
                    const Operand& b,
                    const Operand& c,
                    const EncodePlan& to,
                    uint32_t random = 0) noexcept;
// sqrt(a). sqrt(-0) is -0; the square root of other negative numbers is invalid.
Rounded SquareRoot(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;
// 1 / a.
Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;
// a - n b, where n is the integer nearest to a / b, ties to even [IEEE754] 5.3.1. A zero result has
// the sign of a. An infinite a or a zero b is invalid; an infinite b gives a.
Rounded Remainder(const Operand& a,
                  const Operand& b,
                  const EncodePlan& to,
                  uint32_t random = 0) noexcept;
// Converts `a` to another format. Unlike the other functions it keeps the sign of a NaN, as
// EncodeF32 does.
Rounded Convert(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;
// a * 2^n for any n. Beyond n = +-2^16 the result no longer changes.
Rounded ScaleByPowerOfTwo(const Operand& a,
                          int64_t n,
                          const EncodePlan& to,
                          uint32_t random = 0) noexcept;

// Comparisons, minima and maxima, neighbours and sign operations. Nothing is rounded, except a
// minimum or maximum that is converted to another format.

// The outcome of a comparison; kUnordered if an operand is a NaN.
enum class Relation : uint8_t { kLess, kEqual, kGreater, kUnordered };

// Returns the relation of two values, which may be of different formats. -0 equals +0; a NaN is
// unordered with everything.
Relation Compare(const Operand& a, const Operand& b) noexcept;

// The truth of a predicate, and the flags that testing it raises.
struct Truth {
  bool value = false;
  Flags flags = 0;
};
// The predicates of [IEEE754] 5.11. Signalling predicates raise kInvalid for any NaN, quiet ones
// only for signalling NaNs.
enum class Predicate : uint8_t {
  kEqual,           // eq: quiet
  kLess,            // lt: signalling
  kLessEqual,       // le: signalling
  kEqualSignaling,  // eq_signaling
  kLessQuiet,       // lt_quiet
  kLessEqualQuiet,  // le_quiet
  kUnordered,       // unordered: quiet
};
// Returns the truth of the predicate for a and b, which may be of different formats.
Truth Holds(Predicate predicate, const Operand& a, const Operand& b) noexcept;

// The minima and maxima of [IEEE754] 9.6 and [P3109], which agree where both define an operation:
//   Number     If one operand is a NaN, the result is the other operand. In all other operations
//              except Finite, a NaN gives NaN.
//   Magnitude  Compares |a| with |b|; if these are equal, compares as without Magnitude.
//   Finite     Only in [P3109]. If one operand is a NaN, the result is the other operand, even if
//              that is infinite. If one operand is infinite and the other finite, the result is the
//              finite one. Otherwise as without Finite.
// Two NaNs give NaN. -0 is less than +0.
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
// Returns the minimum or maximum of a and b, rounded once to the format of `to`.
Rounded Choose(Extremum extremum,
               const Operand& a,
               const Operand& b,
               const EncodePlan& to,
               uint32_t random = 0) noexcept;

// NextUp returns the least value of a's format that compares greater than a; NextDown returns the
// greatest value that compares less [IEEE754] 5.3.1. NextUp of the largest value is infinity if the
// format has it, else the value itself; of -infinity, the most negative finite number; of the
// negative number next to zero, -0 if the format has it. NextDown mirrors this. A NaN gives the
// canonical NaN with the sign bit clear, and kInvalid if it is signalling. In unsigned formats,
// NextDown of the least value is the value itself. The unused code of a two's complement grid is
// below the most negative number and is not the neighbour of any other code.
Rounded NextUp(const Operand& a) noexcept;
Rounded NextDown(const Operand& a) noexcept;

// Sign operations on the code. A NaN raises no flag and keeps its payload. In a format without -0,
// +0 stays +0; in a format without NaNs of both signs, the NaN stays the same. In an unsigned
// format, Negate of anything except zero and NaN gives kInvalid and NaN, or the least value if the
// format has no NaN. The unused code of a two's complement grid gives the largest value, kOverflow
// and kInexact.
Rounded Negate(const Operand& a) noexcept;
Rounded Absolute(const Operand& a) noexcept;

// Arithmetic on scaled numbers, rounded once [P3109]: a block operation for one pair of elements.
// The draft requires it for scales in binary8p1uf; here a scale may be of any format and precision.
//
// The value of an operand is scale * element, exact. A NaN scale or element gives NaN; zero times
// infinity gives NaN and kInvalid. Zeros have the signs described above for products and their sum;
// [P3109] has no -0, and neither have its formats.

// The number scale * element, exact.
struct ScaledOperand {
  Operand scale = {};
  Operand element = {};
};

// Return a + b, a - b and a * b of scaled numbers, rounded once to the format of `to`.
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

// Conversions from and to integers, and rounding to an integral value.

// Converts an integer, rounded once. Zero gives +0.
Rounded FromInt64(int64_t value, const EncodePlan& to, uint32_t random = 0) noexcept;
Rounded FromUint64(uint64_t value, const EncodePlan& to, uint32_t random = 0) noexcept;

// The integers of ToInteger: their width and whether they have a sign.
struct IntegerType {
  int bits = 32;  // 1..64
  bool is_signed = true;
};
// The integer that stands for a value out of range or a NaN. IEEE 754 leaves it open; these are the
// conventions of Berkeley SoftFloat [TestFloat], named after processors that have them.
enum class InvalidInteger : uint8_t {
  kRiscv,  // the nearest end of the range; the largest integer for NaN
  kArm,    // the nearest end of the range; 0 for NaN
  kX86,    // always the same: the smallest signed or the largest unsigned integer
};
// An integer and the flags of the conversion to it.
struct RoundedInteger {
  uint64_t bits = 0;  // two's complement in the low `type.bits` bits; the other bits are zero
  Flags flags = 0;
};
// Returns the value rounded to an integer, in any mode; kToOdd takes the odd neighbour. An infinity, a
// value out of range after rounding or a NaN gives what `invalid` says, and raises kInvalid and not
// kInexact. Requires 1 <= type.bits <= 64.
RoundedInteger ToInteger(const Operand& a,
                         IntegerType type,
                         const Rounding& rounding,
                         uint32_t random = 0,
                         InvalidInteger invalid = InvalidInteger::kRiscv) noexcept;

// Rounds to an integral value in the mode `rounding`, then converts it through `to`, which rounds
// again (with the same `random`) only if its format cannot represent the value. Zero results keep
// their sign. Sets kInexact if the value changed.
Rounded RoundToIntegral(const Operand& a,
                        const Rounding& rounding,
                        const EncodePlan& to,
                        uint32_t random = 0) noexcept;

}  // namespace numsim
