// Natural numbers of any size, for numbers that are given as text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace numsim {

class Natural {
 public:
  Natural() = default;
  explicit Natural(uint64_t x);

  bool IsZero() const { return limbs_.empty(); }
  // Returns the number of bits up to the highest that is set; 0 for zero.
  int64_t BitLength() const;

  void MultiplyAdd(uint32_t factor, uint32_t addend);
  void ShiftLeft(int64_t bits);
  void Add(const Natural& other);
  // Requires other <= *this.
  void Subtract(const Natural& other);
  void Multiply(const Natural& other);

  // Returns the `count` highest bits, 1 <= count <= 64, or all bits if there are fewer. `rest` tells
  // whether one of the other bits is set.
  uint64_t HighBits(int count, bool* rest) const;

  // Negative, zero or positive as a is less than, equal to or greater than b.
  friend int Compare(const Natural& a, const Natural& b);

 private:
  void DropZeros();

  std::vector<uint32_t> limbs_;  // the lowest first; the highest is not 0
};

// Returns 5^n. Requires 0 <= n.
Natural PowerOfFive(int64_t n);

}  // namespace numsim
