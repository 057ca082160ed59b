#include "tests/reference/natural.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace oracle {
namespace {

__extension__ using Wide = unsigned __int128;  // GCC and clang

}  // namespace

// Limbs are set from the lowest up.
void Natural::SetLimb(int i, uint64_t limb) {
  if (limb == 0 && i >= kLimbs) return;
  if (i >= kLimbs) {
    std::fprintf(stderr, "oracle: a number of more than %d bits\n", 64 * kLimbs);
    std::abort();
  }
  limbs_[i] = limb;
  if (limb != 0) size_ = i + 1;
}

int Natural::BitLength() const {
  return size_ == 0 ? 0 : 64 * (size_ - 1) + static_cast<int>(std::bit_width(limbs_[size_ - 1]));
}

double Natural::Approximate() const {
  double sum = 0;
  for (int i = std::max(0, size_ - 2); i < size_; ++i) {
    sum += std::ldexp(static_cast<double>(limbs_[i]), 64 * i);
  }
  return sum;
}

Natural operator+(const Natural& a, const Natural& b) {
  Natural sum;
  Wide carry = 0;
  const int size = std::max(a.size_, b.size_);
  for (int i = 0; i < size; ++i) {
    carry += Wide{i < a.size_ ? a.limbs_[i] : 0} + (i < b.size_ ? b.limbs_[i] : 0);
    sum.SetLimb(i, static_cast<uint64_t>(carry));
    carry >>= 64;
  }
  sum.SetLimb(size, static_cast<uint64_t>(carry));
  return sum;
}

Natural operator-(const Natural& a, const Natural& b) {
  Natural difference;
  bool borrow = false;
  for (int i = 0; i < a.size_; ++i) {
    const Wide take = Wide{i < b.size_ ? b.limbs_[i] : 0} + borrow;
    borrow = a.limbs_[i] < take;
    difference.SetLimb(i, static_cast<uint64_t>(a.limbs_[i] - take));
  }
  return difference;
}

Natural operator*(const Natural& a, const Natural& b) {
  if (a.size_ <= 1 && b.size_ <= 1) {
    if (a.size_ == 0 || b.size_ == 0) return {};
    const Wide product = Wide{a.limbs_[0]} * b.limbs_[0];
    Natural result(static_cast<uint64_t>(product));
    result.SetLimb(1, static_cast<uint64_t>(product >> 64));
    return result;
  }
  std::array<uint64_t, 2 * Natural::kLimbs> limbs{};
  for (int i = 0; i < a.size_; ++i) {
    Wide carry = 0;
    for (int j = 0; j < b.size_; ++j) {
      carry += Wide{a.limbs_[i]} * b.limbs_[j] + limbs[i + j];
      limbs[i + j] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
    limbs[i + b.size_] = static_cast<uint64_t>(carry);
  }
  Natural product;
  for (int i = 0; i < a.size_ + b.size_; ++i) product.SetLimb(i, limbs[i]);
  return product;
}

Natural operator<<(const Natural& a, int shift) {
  if (a.size_ == 0 || shift == 0) return a;
  Natural shifted;
  const int limbs = shift / 64;
  const int bits = shift % 64;
  for (int i = 0; i < limbs; ++i) shifted.SetLimb(i, 0);
  uint64_t carry = 0;
  for (int i = 0; i < a.size_; ++i) {
    const Wide wide = Wide{a.limbs_[i]} << bits;
    shifted.SetLimb(limbs + i, static_cast<uint64_t>(wide) | carry);
    carry = static_cast<uint64_t>(wide >> 64);
  }
  shifted.SetLimb(limbs + a.size_, carry);
  return shifted;
}

int Compare(const Natural& a, const Natural& b) {
  if (a.size_ != b.size_) return a.size_ < b.size_ ? -1 : 1;
  for (int i = a.size_ - 1; i >= 0; --i) {
    if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] < b.limbs_[i] ? -1 : 1;
  }
  return 0;
}

Division Divide(const Natural& a, const Natural& b) {
  Division division = {a, false};
  for (int shift = a.BitLength() - b.BitLength(); shift >= 0; --shift) {
    const Natural multiple = b << shift;
    const bool fits = Compare(division.rest, multiple) >= 0;
    if (fits) division.rest = division.rest - multiple;
    division.odd_quotient = fits;  // that of shift 0 is the last
  }
  return division;
}

}  // namespace oracle
