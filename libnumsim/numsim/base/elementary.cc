#include "numsim/base/elementary.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace numsim {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastNormal = std::numeric_limits<double>::min();
constexpr double kLargest = std::numeric_limits<double>::max();

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
// ln 2 in two parts. The product of the first part and an integer below 2^20 is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kTwoPi = 0x1.921fb54442d18p+2;

// Coefficients are written as quotients; the compiler evaluates each with one rounding.
constexpr double kAtanh[] = {
    1. / 23, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3};
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
constexpr double kSin[] = {1. / 355687428096000,
                           -1. / 1307674368000,
                           1. / 6227020800,
                           -1. / 39916800,
                           1. / 362880,
                           -1. / 5040,
                           1. / 120,
                           -1. / 6,
                           1.};
constexpr double kCos[] = {1. / 20922789888000,
                           -1. / 87178291200,
                           1. / 479001600,
                           -1. / 3628800,
                           1. / 40320,
                           -1. / 720,
                           1. / 24,
                           -1. / 2,
                           1.};

// Evaluates a polynomial by Horner's rule; the coefficient of the highest power comes first.
template <size_t N>
double Polynomial(const double (&coefficients)[N], double x) {
  double sum = coefficients[0];
  for (size_t i = 1; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// Returns 2^k as a double. Requires -1022 <= k <= 1023.
double PowerOfTwo(int k) { return std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52); }

// Returns ln x for a positive, finite and normal x.
double LogOfNormal(double x) {
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

}  // namespace

double Log(double x) noexcept {
  if (x >= kLeastNormal && x <= kLargest) return LogOfNormal(x);
  if (x > kLargest) return x;
  if (x > 0) return LogOfNormal(x * 0x1p54) - 54 * kLn2;  // the product is exact
  return x == 0 ? -kInfinity : kNaN;
}

double Exp(double x) noexcept {
  // Beyond 710 and -746 results are infinity and 0; between them k is at most 1077 in magnitude.
  if (!(x >= -746 && x <= 710)) return x > 710 ? kInfinity : x < -746 ? 0 : kNaN;
  const double scaled = x / kLn2;
  const int k = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= 0.35
  const double series = Polynomial(kExp, r);
  // Multiplies in two steps because 2^k alone may be out of range.
  return series * PowerOfTwo(k / 2) * PowerOfTwo(k - k / 2);
}

SinCos SinCos2Pi(double u) noexcept {
  if (!(u >= 0 && u <= 1)) return {kNaN, kNaN};
  const int quadrant = static_cast<int>(4 * u + 0.5);
  const double r = (u - 0.25 * quadrant) * kTwoPi;  // |r| <= pi/4
  const double r2 = r * r;
  const double sin = r * Polynomial(kSin, r2);
  const double cos = Polynomial(kCos, r2);
  switch (quadrant & 3) {
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    case 3:
      return {-cos, sin};
    default:
      return {sin, cos};
  }
}

}  // namespace numsim
