// A sum without rounding: the fixed-point accumulator of Kulisch, wide enough for any number of
// products of two float32 values (and of their scales).
#pragma once

#include <array>
#include <cstdint>

#include "numsim/rounding/unrounded.h"

namespace numsim {

class ExactSum {
 public:
  // Adds one exact number. Order never matters. Requires a finite operand to be a multiple of
  // 2^kLowest and below 2^kHighest, and fewer than 2^62 calls.
  void Add(const Unrounded& x) noexcept;

  // The sum. inf - inf and NaN give NaN; `invalid` tells whether infinities of both signs met.
  // An exact zero is negative if every addend was -0, or if `zero_negative` unless every addend was
  // +0; an empty sum is +0.
  Unrounded Result(bool zero_negative = false) const noexcept;
  bool Invalid() const noexcept;

  static constexpr int kLowest = -704;
  static constexpr int kHighest = 704;

 private:
  static constexpr int kLimbs = (kHighest - kLowest) / 64 + 2;

  std::array<uint64_t, kLimbs> limbs_{};  // two's complement, in units of 2^kLowest
  bool nan_ = false;
  bool positive_infinity_ = false;
  bool negative_infinity_ = false;
  bool any_positive_zero_ = false;
  bool any_negative_zero_ = false;
  bool any_nonzero_ = false;
};

}  // namespace numsim
