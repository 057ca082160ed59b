// Student's t distribution, for any whole number of degrees of freedom.
//
// Results are computed with base/elementary.h and IEEE 754 arithmetic alone, so their bits are the
// same on every machine. Their relative error is below 1e-12 up to 10^6 degrees of freedom.
#pragma once

namespace numsim::experiments {

// Returns P(T > t), the upper tail, for T with `freedom` degrees of freedom. Tails below 1e-280
// are 0 or imprecise, and |t| above 1e140 counts as infinite. Returns NaN for NaN. Throws Error
// unless freedom >= 1.
double StudentTail(double t, int freedom);

// Returns t with P(T < t) = p: 12.7062... for p = 0.975 and one degree of freedom. Returns
// -infinity for p below 1e-280, infinity for p = 1, and either where |t| would exceed 1e140. A
// double p near 1 has few digits of the tail 1 - p: for a small upper tail q take
// -StudentQuantile(q, freedom). Throws Error unless 0 <= p <= 1 and freedom >= 1.
double StudentQuantile(double p, int freedom);

}  // namespace numsim::experiments
