// Natural numbers of up to 1024 bits: what the oracle of arithmetic reckons
// with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace oracle {

// Aborts when a result needs more than kLimbs limbs.
class Natural {
 public:
  static constexpr int kLimbs = 16;

  Natural() = default;
  Natural(uint64_t x) : size_(x != 0) { limbs_[0] = x; }
  Natural(const Natural& other) { *this = other; }
  Natural& operator=(const Natural& other) {
    size_ = other.size_;
    std::copy_n(other.limbs_.begin(), size_, limbs_.begin());
    return *this;
  }

  bool IsZero() const { return size_ == 0; }
  bool IsOdd() const { return size_ > 0 && limbs_[0] % 2 != 0; }
  uint64_t Limb(int i) const {
    return i < size_ ? limbs_[static_cast<size_t>(i)] : 0;
  }  // the lowest is 0
  // The number of bits up to the highest that is set.
  int BitLength() const;
  // A float64 number at most a few units in its last place away; for guesses
  // only.
  double Approximate() const;

  friend Natural operator+(const Natural& a, const Natural& b);
  // Requires a >= b.
  friend Natural operator-(const Natural& a, const Natural& b);
  friend Natural operator*(const Natural& a, const Natural& b);
  friend Natural operator<<(const Natural& a, int shift);
  // Negative, zero or positive as a is less than, equal to or greater than b.
  friend int Compare(const Natural& a, const Natural& b);

 private:
  void SetLimb(int i, uint64_t limb);

  int size_ = 0;  // the highest limb in use is not zero
  std::array<uint64_t, kLimbs> limbs_;
};

// a = quotient b + rest; of the quotient, whether it is odd. By long division
// in base 2.
struct Division {
  Natural rest;
  bool odd_quotient;
};
// Requires b > 0.
Division Divide(const Natural& a, const Natural& b);

}  // namespace oracle
