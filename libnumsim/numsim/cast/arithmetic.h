// Arithmetic on arrays of codes: bit for bit the scalar functions of arith/arith.h, on all threads
// and the active backend.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/arith/arith.h"
#include "numsim/cast/cast.h"

namespace numsim {

enum class ArithmeticOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFma, kSquareRoot };

// Number of operands: 1, 2 or 3.
int Arity(ArithmeticOp op);

// An array of codes in 1, 2 or 4 bytes each.
class ConstCodes {
 public:
  ConstCodes() = default;
  ConstCodes(std::span<const uint8_t> c) : data_(c.data()), size_(c.size()), bytes_(1) {}
  ConstCodes(std::span<const uint16_t> c) : data_(c.data()), size_(c.size()), bytes_(2) {}
  ConstCodes(std::span<const uint32_t> c) : data_(c.data()), size_(c.size()), bytes_(4) {}

  size_t size() const { return size_; }
  int bytes() const { return bytes_; }
  const void* data() const { return data_; }
  // Code i, widened.
  uint32_t operator[](size_t i) const {
    switch (bytes_) {
      case 1:
        return static_cast<const uint8_t*>(data_)[i];
      case 2:
        return static_cast<const uint16_t*>(data_)[i];
      default:
        return static_cast<const uint32_t*>(data_)[i];
    }
  }

 private:
  const void* data_ = nullptr;
  size_t size_ = 0;
  int bytes_ = 1;
};

class Codes {
 public:
  Codes(std::span<uint8_t> c) : data_(c.data()), size_(c.size()), bytes_(1) {}
  Codes(std::span<uint16_t> c) : data_(c.data()), size_(c.size()), bytes_(2) {}
  Codes(std::span<uint32_t> c) : data_(c.data()), size_(c.size()), bytes_(4) {}

  size_t size() const { return size_; }
  int bytes() const { return bytes_; }
  void* data() const { return data_; }

 private:
  void* data_;
  size_t size_;
  int bytes_;
};

// Codes of one operand and their format. Bits of an element above the format's are ignored.
struct ArrayOperand {
  FormatSpec format;
  ConstCodes codes;
};

// out[i] = op(a[i], b[i], c[i]) in the plan's format; element i draws from `random`, as in Encode.
// `flags`, if not empty, receives the flags of each element. Returns the OR of all flags if
// `want_flags` or if `flags` is not empty, else 0 (computing none is faster).
// Requires operands of equal sizes, as many as Arity(op) (the rest empty); storage of at least the
// formats' StorageBytes(); out may be the same memory as an operand of the same width, but may not
// overlap one otherwise.
Flags Arithmetic(ArithmeticOp op,
                 const ArrayOperand& a,
                 const ArrayOperand& b,
                 const ArrayOperand& c,
                 const EncodePlan& to,
                 Codes out,
                 const ArrayRandom& random = {},
                 bool want_flags = false,
                 std::span<uint8_t> flags = {}) noexcept;

}  // namespace numsim
