// Power of the t tests behind a verdict, and the number of seeds that reaches it.
#pragma once

#include <functional>

namespace numsim::experiments {

// Returns P(Z > z) for the standard normal Z, with an absolute error below 1e-14.
double NormalTail(double z) noexcept;

// Returns the probability that an estimate with `freedom` degrees of freedom exceeds its bound: the
// upper tail of the noncentral t distribution, P((Z + shift) / S > quantile). `shift` is the
// distance of the true value from the bound in standard errors. The absolute error is below 1e-4.
double PowerBeyond(double shift, double quantile, int freedom) noexcept;

// Returns the probability that two one-sided tests place an estimate between two bounds. `below`
// and `above` are the distances of the true value from the lower and from the upper bound in
// standard errors, positive between the bounds. The absolute error is below 1e-4.
double PowerWithin(double below, double above, double quantile, int freedom) noexcept;

inline constexpr int kMostSeeds = 10000;
inline constexpr double kPlannedPower = 0.8;

// Returns the smallest n from 2 to kMostSeeds for which power(n) >= kPlannedPower, and
// kMostSeeds + 1 if there is none. Requires a power that does not fall as n grows.
int LeastSeeds(const std::function<double(int)>& power);

}  // namespace numsim::experiments
