#include "numsim/arith/shared/exact_sum.h"

#include <algorithm>
#include <bit>

#include "numsim/base/error.h"

namespace numsim {

void ExactSum::Add(const Unrounded& x) noexcept {
  if (x.kind == NumberKind::kNan) {
    nan_ = true;
    return;
  }
  if (x.kind == NumberKind::kInfinity) {
    (x.negative ? negative_infinity_ : positive_infinity_) = true;
    return;
  }
  if (x.significand == 0) {
    (x.negative ? any_negative_zero_ : any_positive_zero_) = true;
    return;
  }
  any_nonzero_ = true;
  const int low = std::countr_zero(x.significand);
  const int top = x.exponent + static_cast<int>(std::bit_width(x.significand));
  NUMSIM_CHECK(x.exponent + low >= kLowest && top <= kHighest,
               "{} * 2^{} in an exact sum",
               x.significand,
               x.exponent);
  const uint64_t odd = x.significand >> low;
  const int position = x.exponent + low - kLowest;
  const size_t limb = static_cast<size_t>(position / 64);
  const int shift = position % 64;
  const uint64_t parts[2] = {odd << shift, shift == 0 ? 0 : odd >> (64 - shift)};
  // Adds or subtracts the two parts, then propagates the carry.
  uint64_t carry = 0;
  for (size_t i = limb; i < limbs_.size() && (i < limb + 2 || carry != 0); ++i) {
    const uint64_t part = i < limb + 2 ? parts[i - limb] : 0;
    const uint64_t old = limbs_[i];
    if (x.negative) {
      limbs_[i] = old - part - carry;
      carry = old < part || (old == part && carry != 0) ? 1 : 0;
    } else {
      limbs_[i] = old + part + carry;
      carry = limbs_[i] < old || (limbs_[i] == old && carry != 0) ? 1 : 0;
    }
  }
}

bool ExactSum::Invalid() const noexcept { return positive_infinity_ && negative_infinity_; }

Unrounded ExactSum::Result(bool zero_negative) const noexcept {
  if (nan_ || Invalid()) return {NumberKind::kNan, false, 0, 0};
  if (positive_infinity_ || negative_infinity_) {
    return {NumberKind::kInfinity, negative_infinity_, 0, 0};
  }
  std::array<uint64_t, kLimbs> magnitude = limbs_;
  const bool negative = (limbs_.back() >> 63) != 0;
  if (negative) {
    uint64_t carry = 1;
    for (uint64_t& limb : magnitude) {
      limb = ~limb + carry;
      carry = carry != 0 && limb == 0 ? 1 : 0;
    }
  }
  int top = static_cast<int>(kLimbs) - 1;
  while (top >= 0 && magnitude[static_cast<size_t>(top)] == 0) --top;
  if (top < 0) {
    const bool same_sign = !any_nonzero_ && !(any_positive_zero_ && any_negative_zero_);
    const bool zero_sign = same_sign ? any_negative_zero_ : zero_negative;
    return {NumberKind::kFinite, zero_sign, 0, 0};
  }
  // Returns the top 63 bits. The last one is set if any bit below them is (sticky).
  const auto bit_window = [&magnitude](int first) {  // 64 bits from position `first` >= 0
    const size_t limb = static_cast<size_t>(first / 64);
    const int shift = first % 64;
    const uint64_t next = limb + 1 < magnitude.size() ? magnitude[limb + 1] : 0;
    return shift == 0 ? magnitude[limb] : (magnitude[limb] >> shift) | (next << (64 - shift));
  };
  const int width =
      64 * top + static_cast<int>(std::bit_width(magnitude[static_cast<size_t>(top)]));
  const int first = std::max(width - 63, 0);
  const uint64_t kept = bit_window(first) & (~uint64_t{0} >> 1);
  bool sticky = false;
  for (int i = 0; i < first / 64; ++i) sticky = sticky || magnitude[static_cast<size_t>(i)] != 0;
  const uint64_t below = (uint64_t{1} << (first % 64)) - 1;
  sticky = sticky || (magnitude[static_cast<size_t>(first / 64)] & below) != 0;
  return {NumberKind::kFinite, negative, first + kLowest, kept | (sticky ? 1 : 0)};
}

}  // namespace numsim
