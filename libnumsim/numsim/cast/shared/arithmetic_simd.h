// The vector parts of arithmetic.cc: one thread, any length. The caller holds the floating-point
// environment at its default.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/arithmetic.h"

namespace numsim {

// One operation on decoded operands. Its results are exact or rounded to odd: the nearest float and
// the exact error of that rounding tell which way the bits below go, and they leave their mark in
// the last bit. That is a source from which the one rounding rule rounds as from the exact value.
struct OddOperation {
  ArithmeticOp op;
  bool exact;          // the result always fits: there is no error to look for
  bool zero_negative;  // the sign of a zero sum of addends of different signs
};

// x[i] = op(a[i], b[i], c[i]); every NaN is the positive quiet one. Operands that op does not have
// are not read. `flags`, if not null, receives kInvalid and kDivideByZero.
// Requires products that are exact, no overflow, and residuals that do not underflow; a whole
// vector may be read and written beyond n: arrays of kPaddedBlock elements.
void OddResults(const OddOperation& operation,
                const float* a,
                const float* b,
                const float* c,
                size_t n,
                float* x,
                uint8_t* flags);
void OddResults(const OddOperation& operation,
                const double* a,
                const double* b,
                const double* c,
                size_t n,
                double* x,
                uint8_t* flags);

// Elements that arithmetic.cc works on at a time, and room for a vector beyond.
inline constexpr size_t kArithmeticBlock = 1024;
inline constexpr size_t kPaddedBlock = kArithmeticBlock + 128;

// codes[i] = code of x[i]; ORs the flags of the rounding into `flags` if that is not null.
// Requires n <= kArithmeticBlock and padded arrays as above; no format with a subnormal gap, fewer mantissa
// bits than the source's.
void EncodeOdd(const EncodePlan& plan,
               const float* x,
               size_t n,
               uint32_t* codes,
               const ArrayRandom& random,
               uint8_t* flags);
void EncodeOdd(const EncodePlan& plan,
               const double* x,
               size_t n,
               uint32_t* codes,
               const ArrayRandom& random,
               uint8_t* flags);

}  // namespace numsim
