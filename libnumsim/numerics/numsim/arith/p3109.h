// Operations by the draft standard [P3109] v4.0, sections 4 and 5.5, on codes of any format of numsim.
//
// An operation takes the operands' exact values, computes its exact result and projects it once to
// the format of `to`: rounding first, saturation after it. The overflow policy of `to` is the
// saturation mode: nonsaturate is SatNone, saturate SatFinite, propagate SatPropagate. They differ
// from numsim's own operations (arith.h, elementary.h) in what the draft defines otherwise:
//   - There are no flags and one zero: -0 counts as 0, and no result is -0.
//   - All NaNs are one, which is delivered with a clear sign bit.
//   - The angle of (-infinity, y) is pi for every finite y, also below zero.
//   - x / 0 and 1 / 0, 1 / sqrt(0), tan(pi (n + 1/2)), the angle of (0, 0), of two infinities, and
//     hypot of NaN and infinity are NaN.
//   - Under SatNone, a number below an unsigned format's range is NaN, but 0 in modes rtz and rtp, and
//     an overflow in mode odd is infinite in signed formats with infinities. Under SatPropagate,
//     -infinity becomes 0 in unsigned formats.
// Formats of [P3109] of more than 8 exponent bits are not formats of numsim.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "numsim/arith/arith.h"

namespace numsim::p3109 {

// The elementwise operations, those for which the draft defines operations on values, scaled values
// and blocks.
enum class Op : uint8_t {
#define NUMSIM_P3109_OP(name, operands, meaning) k##name,
#include "numsim/arith/p3109_ops.inc"
#undef NUMSIM_P3109_OP
};

// An operation with its name, its meaning and the number of its operands.
struct OpInfo {
  Op op;
  std::string_view name;     // as the draft has it, "ArcTan2Pi"
  std::string_view meaning;  // of operands a, b, c
  size_t operands;           // 1, 2 or 3
};
// All operations, in the order of the enumerators.
inline constexpr std::array kOps = {
#define NUMSIM_P3109_OP(name, operands, meaning) OpInfo{Op::k##name, #name, meaning, operands},
#include "numsim/arith/p3109_ops.inc"
#undef NUMSIM_P3109_OP
};

// Returns op(operands). `random` are the random bits of a stochastic mode, as in EncodeF32. Requires
// as many operands as the operation has.
uint32_t Compute(Op op,
                 std::span<const Operand> operands,
                 const EncodePlan& to,
                 uint32_t random = 0) noexcept;

// Returns op(operands) / scale, where the value of an operand is the exact product of its scale and
// its element: one element of a block operation, and with a scale of 1 a scaled operation. A scale
// that is NaN gives NaN; zero times infinity is NaN. A result scale of 0 gives 0, an infinite one the
// sign of the result times its own, both except for NaN.
uint32_t Compute(Op op,
                 std::span<const ScaledOperand> operands,
                 const Operand& scale,
                 const EncodePlan& to,
                 uint32_t random = 0) noexcept;

// Comparisons. NaN compares false with everything.
enum class Comparison : uint8_t { kLess, kLessEqual, kEqual, kGreaterEqual, kGreater };
// Returns whether the comparison of a with b is true.
bool Holds(Comparison comparison, const Operand& a, const Operand& b) noexcept;
// Returns a <= b in the order in which NaN is below all numbers; two NaNs give true.
bool TotalOrder(const Operand& a, const Operand& b) noexcept;

// The classes of values, in the order of Table 2 of the draft.
enum class Class : uint8_t {
  kNan,
  kNegativeInfinity,
  kNegativeNormal,
  kNegativeSubnormal,
  kZero,
  kPositiveSubnormal,
  kPositiveNormal,
  kPositiveInfinity,
};
// Returns the class of a value.
Class ClassOf(const Operand& a) noexcept;
// Return whether a is a zero, the number 1, NaN, an infinity, or a number.
bool IsZero(const Operand& a) noexcept;
bool IsOne(const Operand& a) noexcept;
bool IsNan(const Operand& a) noexcept;
bool IsInfinite(const Operand& a) noexcept;
bool IsFinite(const Operand& a) noexcept;
// Return whether a is below zero (false for NaN and -0), a normal or a subnormal number.
bool IsSignMinus(const Operand& a) noexcept;
bool IsNormal(const Operand& a) noexcept;
bool IsSubnormal(const Operand& a) noexcept;

// Return the code of the least value above a, or of the greatest below it; NaN if there is none, so
// for infinity and, in formats without it, for the largest value. A format without NaN keeps the value.
uint32_t NextGreaterThan(const Operand& a) noexcept;
uint32_t NextLessThan(const Operand& a) noexcept;

// The format-level operations of section 4.14; values are codes. External formats are described in
// the same way.
struct FormatProperties {
  int bitwidth = 0;
  int precision = 0;
  bool is_signed = false;
  bool is_extended = false;  // the domain: with infinities
  int exponent_bitwidth = 0;
  int trailing_significand_bitwidth = 0;
  int exponent_bias = 0;
  uint32_t max_finite = 0;
  uint32_t min_finite = 0;
  uint32_t min_positive = 0;
  uint32_t max_subnormal = 0;  // NaN if no value is subnormal
  uint32_t min_normal = 0;     // NaN if no value is normal
};
// Returns the properties of a format.
FormatProperties PropertiesOf(const FormatSpec& format) noexcept;

// Same as numsim::Divide and numsim::Reciprocal, with flags, except that a zero divisor gives NaN and
// kInvalid for every dividend other than NaN: a zero without a sign does not determine the sign of an
// infinity.
Rounded Divide(const Operand& a,
               const Operand& b,
               const EncodePlan& to,
               uint32_t random = 0) noexcept;
Rounded Reciprocal(const Operand& a, const EncodePlan& to, uint32_t random = 0) noexcept;

}  // namespace numsim::p3109
