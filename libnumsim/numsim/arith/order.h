// Comparisons, minima and maxima, neighbours, sign operations. No rounding, but for a minimum or
// maximum delivered in another format.
#pragma once

#include <cstdint>

#include "numsim/arith/arith.h"

namespace numsim {

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

}  // namespace numsim
