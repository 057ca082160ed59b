// Arithmetic on arrays of codes, on all threads and the active backend. Results equal those of the
// scalar functions of arith/arith.h bit for bit.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/arith/arith.h"
#include "numsim/cast/cast.h"

namespace numsim {

// The operations on arrays of codes.
enum class ArithmeticOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFma, kSquareRoot };

// Returns the number of operands of `op`: 1, 2 or 3.
int Arity(ArithmeticOp op);

// A read-only array of codes of 1, 2 or 4 bytes each, owned by the caller.
class ConstCodes {
 public:
  ConstCodes() = default;
  ConstCodes(std::span<const uint8_t> c) : data_(c.data()), size_(c.size()), bytes_(1) {}
  ConstCodes(std::span<const uint16_t> c) : data_(c.data()), size_(c.size()), bytes_(2) {}
  ConstCodes(std::span<const uint32_t> c) : data_(c.data()), size_(c.size()), bytes_(4) {}

  // The number of codes, the bytes of each, and their address.
  size_t size() const { return size_; }
  int bytes() const { return bytes_; }
  const void* data() const { return data_; }
  // Returns code i, widened to 32 bits.
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

// A writable array of codes of 1, 2 or 4 bytes each, owned by the caller.
class Codes {
 public:
  Codes(std::span<uint8_t> c) : data_(c.data()), size_(c.size()), bytes_(1) {}
  Codes(std::span<uint16_t> c) : data_(c.data()), size_(c.size()), bytes_(2) {}
  Codes(std::span<uint32_t> c) : data_(c.data()), size_(c.size()), bytes_(4) {}

  // The number of codes, the bytes of each, and their address.
  size_t size() const { return size_; }
  int bytes() const { return bytes_; }
  void* data() const { return data_; }
  // Stores code i. Bits that do not fit an element are dropped.
  void Set(size_t i, uint32_t code) const {
    switch (bytes_) {
      case 1:
        static_cast<uint8_t*>(data_)[i] = static_cast<uint8_t>(code);
        return;
      case 2:
        static_cast<uint16_t*>(data_)[i] = static_cast<uint16_t>(code);
        return;
      default:
        static_cast<uint32_t*>(data_)[i] = code;
    }
  }

 private:
  void* data_;
  size_t size_;
  int bytes_;
};

// The codes of one operand and their format. Bits above the format's width are ignored.
struct ArrayOperand {
  FormatSpec format = {};
  ConstCodes codes = {};
};

// Writes out[i] = op(a[i], b[i], c[i]) in the plan's format. In a stochastic mode, element i uses
// the random bits of index random.first_index + i, as in Encode (cast.h).
// If `flags` is not empty, flags[i] receives the flags of element i. Returns the OR of all flags if
// `want_flags` is set or `flags` is not empty. Otherwise no flags are computed, which is faster,
// and the result is 0.
// Requires Arity(op) operands of the size of `out`; the others must be empty. The codes of each
// array must have at least the StorageBytes() of their format. `out` may be the same memory as an
// operand of the same width, but must not overlap an operand otherwise. Throws Error if a size does
// not fit.
Flags Arithmetic(ArithmeticOp op,
                 const ArrayOperand& a,
                 const ArrayOperand& b,
                 const ArrayOperand& c,
                 const EncodePlan& to,
                 Codes out,
                 const ArrayRandom& random = {},
                 bool want_flags = false,
                 std::span<uint8_t> flags = {});

}  // namespace numsim
