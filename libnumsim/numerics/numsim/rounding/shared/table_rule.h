// Rounding to a table of values (formats/value_table.h has the definition).
//
// In a deterministic mode the code is a step function of the number that never falls. Its steps are
// computed once per table and mode, in exact arithmetic; an encoder then counts the steps that a
// number has reached, by comparing integers. A stochastic encoder finds the two neighbours in this
// way and compares x with the number from which these random bits round up, exactly.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::table_rule {

// Return an integer that orders numbers, infinities included, as the numbers themselves: the key of
// the float with these bits. -0 has the key -1.
constexpr int32_t KeyOf(uint32_t bits) {
  return static_cast<int32_t>((bits >> 31) != 0 ? bits ^ 0x7FFFFFFFu : bits);
}
constexpr int64_t KeyOf(uint64_t bits) {
  return static_cast<int64_t>((bits >> 63) != 0 ? bits ^ 0x7FFFFFFFFFFFFFFFu : bits);
}

// steps[i] is the key of the smallest number that is rounded to position i + 1 or a higher one. A
// step at 0 is at -0.
struct Steps {
  std::vector<int32_t> f32;
  std::vector<int64_t> f64;
};

// Returns the steps of a table in a deterministic mode, built at the first call; for kStochastic
// those of kDown. Thread-safe.
const Steps& StepsOf(const FormatSpec& format, RoundingMode mode);

// Random bits round away from the neighbour t toward zero if nu * 2^shift exceeds `least`, or equals
// it and `or_equal`: the inequalities of rounding.h without their roundings.
struct Threshold {
  int shift;
  uint64_t least;
  bool or_equal;
};
Threshold ThresholdOf(const Rounding& rounding, uint32_t random);

// Returns true if x, which lies between the values at `position` and `position` + 1 or on the first,
// is rounded to the second by the random bits. Requires a stochastic mode.
bool RoundsUp(const EncodePlan& plan, size_t position, const Unrounded& x, uint32_t random);

// Do what EncodeF64 and EncodeUnrounded do. Require plan.format.IsTable().
uint32_t EncodeF64(const EncodePlan& plan, uint64_t value_bits, uint32_t random) noexcept;
Rounded EncodeUnrounded(const EncodePlan& plan, const Unrounded& x, uint32_t random) noexcept;

}  // namespace numsim::table_rule
