// The vector loops behind arithmetic.h, round_f64.h and round_step.h. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/arithmetic.h"

namespace numsim {

// One operation on decoded operands. Its results are exact or rounded to odd: the sign of the exact
// error of the nearest float tells on which side of it the exact result lies, and the last bit
// records that an error exists. The rounding rule gives the same code for such a result as for the
// exact value.
struct OddOperation {
  ArithmeticOp op;
  bool exact;          // results always fit, so there is no error to compute
  bool zero_negative;  // a zero sum of addends of different signs is -0, not +0
};

// Writes x[i] = op(a[i], b[i], c[i]), exact or rounded to odd. Every NaN result is the positive
// quiet NaN. Operands that the operation does not have are not read. If `flags` is not null,
// flags[i] is set to those of kInvalid and kDivideByZero that apply.
// Requires the default floating-point environment, exact products, no overflow, and residuals that
// do not underflow. Up to a whole vector beyond n may be read and written: see kPaddedBlock.
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

// The number of elements of a block, and the same with padding for one more vector.
inline constexpr size_t kArithmeticBlock = 1024;
inline constexpr size_t kPaddedBlock = kArithmeticBlock + 128;

// Writes codes[i] = the code of x[i] in the plan's format. ORs the flags of the rounding into
// flags[i] if `flags` is not null. Element i uses the random bits of index random.first_index + i.
// Requires n <= kArithmeticBlock, arrays of kPaddedBlock elements, and a format without a subnormal
// gap and with fewer mantissa bits than the type of x.
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
