// The learning rate at which naive rounding stops moving weights: measured, and predicted from the
// arrays and from the distribution that they are drawn from.
//
// A weight w moves in the direction of its update u once lr |u| exceeds h, the distance from w to
// the rounding boundary on that side, which is half a gap. So no weight of given arrays moves if
// and only if
//   lr < min_i h_i / |u_i|
// with two exceptions: rounding the sum to float32 changes the limit by a factor within
// 1 +- 2^(m - 21), where m is the number of mantissa bits of the format; and on the boundary itself
// ties-to-even decides.
//
// If the arrays are drawn from the standard normal distribution and w = Q(x), the expected share of
// weights that move is
//   independent keys:  P(lr) = sum over w of P(Q(x) = w) P(|u| > h(w, sign u) / lr)
//   same key, u = x:   P(lr) = sum over w of P(Q(x) = w and |x| > h(w) / lr)
// and none of n weights is expected to move where n P(lr) < 1. With the same key, gap and update
// depend on each other. In a binade [2^e, 2^(e+1)) with gap g = 2^(e-m), all x within g/2 of w
// round to w and have the threshold (g/2) / |x|. This threshold lies between
//   (g/2) / (2^(e+1) - g/2) = 1 / (2^(m+2) - 1)    at the upper end of the binade and
//   (g/2) / (2^e - g/4)     = 2 / (2^(m+2) - 1)    at its lower end, below which gaps are narrower,
// whatever e is. So all normal numbers have one common cliff, which is a factor of 2 wide.
//
// The expected square of a step is such a sum over every boundary t_k that the step may pass, with
// d_k^2 - d_(k-1)^2 for each, where d_k is the distance to the k-th neighbour:
//   E(lr) = sum over w, k of (d_k^2 - d_(k-1)^2) P(Q(x) = w, |lr u| > t_k)
// Half of the norm is gone where E(lr) < lr^2 / 4.
#pragma once

#include <span>

#include "numsim/formats/format_spec.h"

namespace numsim::experiments::update_fidelity {

// The greatest rate that is tried.
inline constexpr float kGreatestRate = 1e6f;

// The measured limits of the naive rule.
struct NaiveLimits {
  float unmoved;    // greatest float32 rate at which no weight moves; NaN: none moves up to 1e6
  float half_norm;  // rate at which ||step|| crosses lr ||u|| / 2, see FindHalfNorm; NaN: none
};

// Finds the limits by repeated calls of the naive rule. Requires weights of the format.
NaiveLimits MeasureNaiveLimits(const FormatSpec& format,
                               std::span<const float> weights,
                               std::span<const float> update);

// Returns min_i h_i / |u_i|; infinity if no weight can move.
double LeastThreshold(const FormatSpec& format,
                      std::span<const float> weights,
                      std::span<const float> update);

// Return P(lr) and E(lr) as defined above. Require a signed format of at most 16 bits.
double MovedShareExpected(const FormatSpec& format, bool same_key, double lr);
double StepSquareExpected(const FormatSpec& format, bool same_key, double lr);

// Returns the rate at which n P(lr) = 1, where n is `elements`; NaN if it is outside 1e-30 to 1e6.
double UnmovedExpected(const FormatSpec& format, bool same_key, double elements);
// Returns the rate at which E(lr) = lr^2 / 4, see FindHalfNorm; NaN if there is none.
double HalfNormExpected(const FormatSpec& format, bool same_key);

// Returns P(Z > z) for a standard normal Z with a relative error below 1e-12. Requires z >= 0.
double NormalTail(double z);
// Returns P(low < Z < high) for 0 <= low. The relative error is small also for narrow intervals.
double NormalInterval(double low, double high);

}  // namespace numsim::experiments::update_fidelity
