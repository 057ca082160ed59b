// From float64 to values of a format, for sums that do not fit float32. One thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/cast/cast.h"

namespace numsim {

// a + b = sum + error exactly, sum being the nearest float64. Requires no overflow.
struct ExactSum {
  double sum, error;
};
NUMSIM_HOST_DEVICE inline ExactSum SumExactly(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// a + b rounded to odd: the sum where float64 holds it, else of both neighbours the one whose last
// bit is odd. 53 bits hold two more than any format, so that rounding again equals rounding once
// [Boldo].
NUMSIM_HOST_DEVICE inline double OddSum(double a, double b) {
  const ExactSum exact = SumExactly(a, b);
  if (exact.error == 0) return exact.sum;
  const uint64_t bits = std::bit_cast<uint64_t>(exact.sum);
  const bool above = (exact.error < 0) != (exact.sum < 0);  // its magnitude, of the exact one's
  return std::bit_cast<double>((above ? bits - 1 : bits) | 1);
}

// out[i] = the value of the plan's format that x[i] rounds to, in vectors. Requires
// n <= kArithmeticBlock, an x of kPaddedBlock elements (arithmetic_simd.h), exact or rounded to
// odd, and no format with a subnormal gap.
void RoundOddBlock(
    const EncodePlan& plan, const double* x, size_t n, float* out, const ArrayRandom& random);

// out[i] = the value of the plan's format that x[i] rounds to. NaN as in encode.h.
// Requires a deterministic mode; any length.
void RoundF64Serial(const EncodePlan& plan, const double* x, size_t n, float* out);

// out[i] = the value that the exact sum a[i] + b[i] rounds to, once. A zero sum of addends of
// different signs is +0. The same requirements, sums that do not overflow, and the default
// floating-point environment.
void RoundSumSerial(const EncodePlan& plan, const double* a, const double* b, size_t n, float* out);

// codes[i] = code of x[i]. Requires a deterministic mode and codes of at most 16 bits.
void EncodeF64Serial(const EncodePlan& plan, const double* x, size_t n, uint16_t* codes);

}  // namespace numsim
