// A sum without rounding: Kulisch's fixed-point accumulator. It is wide enough for any number of
// products of two float32 values (and of their scales).
#pragma once

#include <array>
#include <cstdint>

#include "numsim/rounding/unrounded.h"

namespace numsim {

class ExactSum {
 public:
  // Adds one exact number. The order of the addends does not matter. Requires a finite operand to
  // be a multiple of 2^kLowest with a magnitude below 2^kHighest, and fewer than 2^62 calls.
  void Add(const Unrounded& x) noexcept;

  // Returns the sum. inf - inf and NaN give NaN; Invalid() is true if infinities of both signs were
  // added. An exact zero is +0 if every addend was +0 or there was none, -0 if every addend was -0;
  // otherwise `zero_negative` gives its sign.
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
