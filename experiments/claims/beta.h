// The regularised incomplete beta function, and tails of distributions that it gives.
//
// Results use base/elementary.h and IEEE 754 arithmetic alone, so their bits are the same on every
// machine. Relative errors are below 1e-12 for arguments up to 1e6 and results above 1e-280;
// smaller results are 0 or imprecise.
#pragma once

namespace numsim::experiments {

// Returns x^a y^b / B(a, b). Requires a, b >= 1/2 and y = 1 - x, both positive. Both are arguments
// because 1 - x would lose the digits of a small y.
double BetaPowers(double a, double b, double x, double y) noexcept;

// Returns I_x(a, b), the probability that a variable with the beta distribution (a, b) is at most
// x. Requires what BetaPowers requires, and x <= a / (a + b): the lower part of the distribution,
// whose relative error is small however small it is.
double LowerBeta(double a, double b, double x, double y) noexcept;

// Returns I_x(a, b) for any x and y = 1 - x in [0, 1], as 1 - I_y(b, a) in the upper part.
double RegularizedBeta(double a, double b, double x, double y) noexcept;

// Returns the probability of at least `least` successes in `trials` independent trials with that
// probability of success. Requires 0 <= least <= trials + 1 and 0 <= success <= 1.
double BinomialTail(int least, int trials, double success) noexcept;

}  // namespace numsim::experiments
