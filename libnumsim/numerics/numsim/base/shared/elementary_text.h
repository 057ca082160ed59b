// The text of Log and Exp (base/elementary.h), compiled for the host and for a device. IEEE 754
// operations in a fixed order, so both give the same bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "numsim/base/host_device.h"

namespace numsim::elementary {

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
// ln 2 in two parts. The product of the first part and an integer below 2^20 is exact.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// Evaluates a polynomial by Horner's rule; the coefficient of the highest power comes first.
template <size_t N>
NUMSIM_HOST_DEVICE inline double Polynomial(const double (&coefficients)[N], double x) {
  double sum = coefficients[0];
  for (size_t i = 1; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// Returns 2^k as a double. Requires -1022 <= k <= 1023.
NUMSIM_HOST_DEVICE inline double PowerOfTwo(int k) {
  return std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
}

// Returns ln x for a positive, finite and normal x.
NUMSIM_HOST_DEVICE inline double LogOfNormal(double x) {
  // Coefficients are written as quotients; the compiler evaluates each with one rounding.
  constexpr double kAtanh[] = {1. / 23,
                               1. / 21,
                               1. / 19,
                               1. / 17,
                               1. / 15,
                               1. / 13,
                               1. / 11,
                               1. / 9,
                               1. / 7,
                               1. / 5,
                               1. / 3};
  // x = m 2^k with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh((m - 1) / (m + 1)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int k = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++k;
  }
  const double f = (m - 1) / (m + 1);
  const double f2 = f * f;
  const double log_m = 2 * f + 2 * f * (f2 * Polynomial(kAtanh, f2));
  return k * kLn2High + (k * kLn2Low + log_m);
}

// Returns numsim::Log(x).
NUMSIM_HOST_DEVICE inline double Log(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kLargest = std::numeric_limits<double>::max();
  if (x >= std::numeric_limits<double>::min() && x <= kLargest) return LogOfNormal(x);
  if (x > kLargest) return x;
  if (x > 0) return LogOfNormal(x * 0x1p54) - 54 * kLn2;  // the product is exact
  return x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
}

// Returns numsim::Exp(x).
NUMSIM_HOST_DEVICE inline double Exp(double x) {
  constexpr double kExp[] = {1. / 1307674368000,
                             1. / 87178291200,
                             1. / 6227020800,
                             1. / 479001600,
                             1. / 39916800,
                             1. / 3628800,
                             1. / 362880,
                             1. / 40320,
                             1. / 5040,
                             1. / 720,
                             1. / 120,
                             1. / 24,
                             1. / 6,
                             1. / 2,
                             1.,
                             1.};
  // Beyond 710 and -746 results are infinity and 0; between them k is at most 1077 in magnitude.
  if (!(x >= -746 && x <= 710)) {
    if (x > 710) return std::numeric_limits<double>::infinity();
    return x < -746 ? 0 : std::numeric_limits<double>::quiet_NaN();
  }
  const double scaled = x / kLn2;
  const int k = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= 0.35
  const double series = Polynomial(kExp, r);
  // Multiplies in two steps because 2^k alone may be out of range.
  return series * PowerOfTwo(k / 2) * PowerOfTwo(k - k / 2);
}

}  // namespace numsim::elementary
