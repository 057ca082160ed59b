#include "numsim/base/elementary.h"

#include <limits>

#include "numsim/base/shared/elementary_text.h"

namespace numsim {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kTwoPi = 0x1.921fb54442d18p+2;

// Coefficients are written as quotients; the compiler evaluates each with one rounding.
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

using elementary::Polynomial;

}  // namespace

double Log(double x) noexcept { return elementary::Log(x); }

double Exp(double x) noexcept { return elementary::Exp(x); }

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
