// Conversion of float64 numbers to values of a format, for sums that do not fit float32. One
// thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/cast/cast.h"

namespace numsim {

// The exact sum of two float64 numbers: a + b = sum + error, with `sum` the nearest float64.
struct SumAndError {
  double sum, error;
};
// Returns a + b exactly. Requires no overflow.
NUMSIM_HOST_DEVICE inline SumAndError SumExactly(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// Returns a + b rounded to odd: the sum itself if float64 holds it, else the neighbouring float64
// whose last bit is odd. 53 bits are at least two more than any format has, so rounding the result
// again equals rounding the exact sum once [Boldo].
NUMSIM_HOST_DEVICE inline double OddSum(double a, double b) {
#ifdef NUMSIM_SUM_DOWN
  const double down = NUMSIM_SUM_DOWN(a, b), up = NUMSIM_SUM_UP(a, b);  // equal or neighbours
  return (std::bit_cast<uint64_t>(down) & 1) != 0 ? down : up;
#else
  const SumAndError exact = SumExactly(a, b);
  if (exact.error == 0) return exact.sum;
  const uint64_t bits = std::bit_cast<uint64_t>(exact.sum);
  const bool above = (exact.error < 0) != (exact.sum < 0);  // |sum| exceeds the exact magnitude
  return std::bit_cast<double>((above ? bits - 1 : bits) | 1);
#endif
}

// Returns a + b rounded toward zero.
NUMSIM_HOST_DEVICE inline double SumTowardZero(double a, double b) {
#ifdef NUMSIM_SUM_TOWARD_ZERO
  return NUMSIM_SUM_TOWARD_ZERO(a, b);
#else
  const SumAndError exact = SumExactly(a, b);
  const uint64_t bits = std::bit_cast<uint64_t>(exact.sum);
  const bool above = exact.error != 0 && (exact.error < 0) != (exact.sum < 0);
  return std::bit_cast<double>(above ? bits - 1 : bits);
#endif
}

// Writes out[i] = the value of the plan's format that x[i] rounds to, for any length. NaN is
// treated as by EncodeF64 (rounding/encode.h). In a stochastic mode, element i uses the random bits
// of index random.first_index + i.
void RoundF64Serial(
    const EncodePlan& plan, const double* x, size_t n, float* out, const ArrayRandom& random = {});

// Writes out[i] = the value that the exact sum a[i] + b[i] rounds to, rounded once. A zero sum of
// addends of different signs is +0. Requires a deterministic mode, sums that do not overflow, and
// the default floating-point environment.
void RoundSumSerial(const EncodePlan& plan, const double* a, const double* b, size_t n, float* out);

// Writes codes[i] = the code of x[i], for any length. Requires a code type of at least
// plan.format.StorageBytes() bytes.
void EncodeF64Serial(const EncodePlan& plan,
                     const double* x,
                     size_t n,
                     uint8_t* codes,
                     const ArrayRandom& random = {}) noexcept;
void EncodeF64Serial(const EncodePlan& plan,
                     const double* x,
                     size_t n,
                     uint16_t* codes,
                     const ArrayRandom& random = {}) noexcept;
void EncodeF64Serial(const EncodePlan& plan,
                     const double* x,
                     size_t n,
                     uint32_t* codes,
                     const ArrayRandom& random = {}) noexcept;

}  // namespace numsim
