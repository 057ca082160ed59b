#include "experiments/claims/student_t.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/claims/beta.h"
#include "numsim/base/elementary.h"
#include "numsim/base/require.h"

namespace numsim::experiments {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeast = 1e-140, kLargest = 1e140;  // their squares are normal numbers
constexpr double kLeastTail = 1e-280;

// The areas under the density, and t times the density: the derivative of an area by ln t.
struct Areas {
  double inside;   // P(0 < T < t)
  double tail;     // P(T > t)
  double density;  // times t
};

// Requires kLeast <= t <= kLargest. T^2 / (freedom + T^2) has the distribution beta(1/2, freedom /
// 2). The smaller of its two parts is computed, the other is what remains: both are exact.
Areas AreasAt(double t, int freedom) {
  const double nu = freedom, t2 = t * t;
  const double x = nu / (nu + t2), y = t2 / (nu + t2);
  const double density = BetaPowers(nu / 2, 0.5, x, y);
  if (t2 > 1) {
    const double tail = LowerBeta(nu / 2, 0.5, x, y) / 2;
    return {0.5 - tail, tail, density};
  }
  const double inside = LowerBeta(0.5, nu / 2, y, x) / 2;
  return {inside, 0.5 - inside, density};
}

double TailOfPositive(double t, int freedom) {
  if (t < kLeast) return 0.5;
  return t > kLargest ? 0 : AreasAt(t, freedom).tail;
}

// Returns t > 0 with P(T > t) = tail for 0 < tail < 1/2. Newton's method for the logarithm of the
// smaller area as a function of ln t, which is nearly a straight line near 0 and far out. A step
// that leaves the bracket is replaced by the bracket's geometric mean.
double UpperQuantile(double tail, int freedom) {
  if (tail < std::max(kLeastTail, TailOfPositive(kLargest, freedom))) return kInfinity;
  const double inside = 0.5 - tail;
  double low = kLeast, high = kLargest, t = 1;
  for (int i = 0; i < 300; ++i) {
    const Areas at = AreasAt(t, freedom);
    double next = 0;
    bool above = true;
    if (at.tail > kLeastTail / 1e10) {
      const double excess = inside < tail ? Log(at.inside / inside) : Log(tail / at.tail);
      const double slope = at.density / (inside < tail ? at.inside : at.tail);
      above = excess > 0;
      next = t * Exp(std::clamp(-excess / slope, -100., 100.));
    }
    (above ? high : low) = t;
    if (std::abs(next - t) <= 4e-16 * t) return next;
    t = next > low && next < high ? next : std::sqrt(low) * std::sqrt(high);
  }
  return t;
}

void RequireFreedom(const char* function, int freedom) {
  NUMSIM_REQUIRE(freedom >= 1, "{}: {} degrees of freedom, expected at least 1", function, freedom);
}

}  // namespace

double StudentTail(double t, int freedom) {
  RequireFreedom("StudentTail", freedom);
  if (std::isnan(t)) return t;
  return t >= 0 ? TailOfPositive(t, freedom) : 1 - TailOfPositive(-t, freedom);
}

double StudentQuantile(double p, int freedom) {
  RequireFreedom("StudentQuantile", freedom);
  NUMSIM_REQUIRE(p >= 0 && p <= 1, "StudentQuantile: p is {}, expected 0 to 1", p);
  if (p == 0.5) return 0;
  return p < 0.5 ? -UpperQuantile(p, freedom) : UpperQuantile(1 - p, freedom);
}

}  // namespace numsim::experiments
