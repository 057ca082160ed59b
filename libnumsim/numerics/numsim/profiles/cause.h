// Why two conversions differ on an interval of inputs, as far as input and results show it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "numsim/profiles/diff.h"
#include "numsim/profiles/profile.h"

namespace numsim {

// Why two implementations differ on an interval.
enum class DifferenceCause : uint8_t {
  kNanCode,         // NaN inputs: both results are NaN, with different codes
  kNanLost,         // NaN inputs: one result is a number
  kInfinity,        // the input is infinity alone
  kZero,            // the input is zero alone
  kSignOfZero,      // both results are zero, of different signs
  kShiftWrapsA,     // side a converts x, far below its smallest value, as x times 2^64
  kShiftWrapsB,     // the same on side b
  kNegative,        // negative inputs to a format without sign
  kLargestValue,    // overflow, and the largest values of the two sides differ
  kEarlyOverflowA,  // side a tests for overflow before it rounds to the largest value
  kEarlyOverflowB,  // the same on side b
  kOtherOverflow,   // overflow beyond that: one side saturates, or they signal it differently
  kSpacing,         // below the normal numbers of one side: the values of the sides differ there
  kTie,             // the input is halfway between the two results
  kNearTie,         // inputs close to halfway, as after rounding twice
  kRounding,        // other finite results
  kNanResult,       // one side gives NaN or infinity for a finite input that does not overflow
};

// Returns a short name such as "nan-code" or "shift-wraps-b".
std::string_view ToString(DifferenceCause cause);

// Returns one clause in plain words, in which the sides are called `a` and `b`: "hip-host tests for
// overflow before it rounds: numbers that round to the largest value overflow".
std::string Explanation(DifferenceCause cause, std::string_view a, std::string_view b);

// Returns the first cause of the list above that applies to an interval of Diff(a, b). Requires an
// interval of these two conversions with source patterns of one sign.
DifferenceCause CauseOf(const DifferingInterval& interval,
                        const ProfileConversion& a,
                        const ProfileConversion& b);

}  // namespace numsim
