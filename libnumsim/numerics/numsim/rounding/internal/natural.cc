#include "numsim/rounding/internal/natural.h"

#include <algorithm>
#include <bit>

#include "numsim/base/error.h"

namespace numsim {

Natural::Natural(uint64_t x) {
  for (; x != 0; x >>= 32) limbs_.push_back(static_cast<uint32_t>(x));
}

void Natural::DropZeros() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

int64_t Natural::BitLength() const {
  if (limbs_.empty()) return 0;
  return 32 * static_cast<int64_t>(limbs_.size()) - std::countl_zero(limbs_.back());
}

void Natural::MultiplyAdd(uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (uint32_t& limb : limbs_) {
    carry += uint64_t{limb} * factor;
    limb = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  if (carry != 0) limbs_.push_back(static_cast<uint32_t>(carry));
  DropZeros();
}

void Natural::ShiftLeft(int64_t bits) {
  NUMSIM_CHECK(bits >= 0, "{} bits", bits);
  if (limbs_.empty()) return;
  const auto whole = static_cast<std::ptrdiff_t>(bits / 32);
  const int part = static_cast<int>(bits % 32);
  if (part != 0) MultiplyAdd(uint32_t{1} << part, 0);
  limbs_.insert(limbs_.begin(), static_cast<size_t>(whole), 0);
}

void Natural::Add(const Natural& other) {
  limbs_.resize(std::max(limbs_.size(), other.limbs_.size()) + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < limbs_.size(); ++i) {
    carry += uint64_t{limbs_[i]} + (i < other.limbs_.size() ? other.limbs_[i] : 0);
    limbs_[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  DropZeros();
}

void Natural::Subtract(const Natural& other) {
  int64_t borrow = 0;
  for (size_t i = 0; i < limbs_.size(); ++i) {
    borrow += int64_t{limbs_[i]} - (i < other.limbs_.size() ? other.limbs_[i] : 0);
    limbs_[i] = static_cast<uint32_t>(borrow);
    borrow >>= 32;  // 0 or -1
  }
  NUMSIM_CHECK(borrow == 0, "a negative difference");
  DropZeros();
}

void Natural::Multiply(const Natural& other) {
  Natural product;
  product.limbs_.resize(limbs_.size() + other.limbs_.size());
  for (size_t i = 0; i < limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < other.limbs_.size(); ++j) {
      carry += product.limbs_[i + j] + uint64_t{limbs_[i]} * other.limbs_[j];
      product.limbs_[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    product.limbs_[i + other.limbs_.size()] = static_cast<uint32_t>(carry);
  }
  product.DropZeros();
  *this = std::move(product);
}

uint64_t Natural::HighBits(int count, bool* rest) const {
  const int64_t low = std::max<int64_t>(BitLength() - count, 0);  // place of the lowest bit
  const auto first = static_cast<size_t>(low / 32);
  const int part = static_cast<int>(low % 32);
  uint64_t bits = 0;
  for (size_t i = 0; i < 3 && first + i < limbs_.size(); ++i) {
    const uint64_t limb = limbs_[first + i];
    if (i == 0) {
      bits = limb >> part;
    } else if (32 * static_cast<int>(i) - part < 64) {
      bits |= limb << (32 * static_cast<int>(i) - part);
    }
  }
  *rest = first < limbs_.size() && (limbs_[first] & ((uint32_t{1} << part) - 1)) != 0;
  for (size_t i = 0; i < first && !*rest; ++i) *rest = limbs_[i] != 0;
  return bits;
}

int Compare(const Natural& a, const Natural& b) {
  if (a.limbs_.size() != b.limbs_.size()) return a.limbs_.size() < b.limbs_.size() ? -1 : 1;
  for (size_t i = a.limbs_.size(); i-- > 0;) {
    if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] < b.limbs_[i] ? -1 : 1;
  }
  return 0;
}

Natural PowerOfFive(int64_t n) {
  constexpr uint32_t kFive13 = 1220703125;  // 5^13, the largest power below 2^32
  Natural power(1);
  for (; n >= 13; n -= 13) power.MultiplyAdd(kFive13, 0);
  for (; n > 0; --n) power.MultiplyAdd(5, 0);
  return power;
}

}  // namespace numsim
