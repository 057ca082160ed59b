// The loops over elements of exact sums by int8 digits (gemm_paths_digits.h), for processors with
// AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

// The most digits of an operand.
inline constexpr int kMostDigits = 8;

// Writes to[i * stride + k] = digit i of the integer x[k] 2^-unit, for i < digits and k < n: that
// integer is the sum of digit i times 256^i, -128 <= digit <= 127. Infinities and NaN count as 0.
// Requires integers that have so many digits, digits <= kMostDigits.
void CutIntoDigits(const float* x, size_t n, int unit, int digits, uint8_t* to, size_t stride);

// Adds sums[k] << shift to totals[k], modulo 2^64.
void AddShifted(const int32_t* sums, int shift, size_t n, int64_t* totals);

// Writes out[k] = (high[k] 2^32 + low[k]) 2^unit, rounded to odd to float64. Requires
// |high[k]| < 2^62.
void RoundToOdd(const int64_t* low, const int64_t* high, int unit, size_t n, double* out);
// Does the same for high[k] = 0.
void RoundToOdd(const int64_t* low, int unit, size_t n, double* out);

}  // namespace numsim
