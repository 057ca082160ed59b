// Where naive rounding stops moving weights: measured, and predicted from the arrays and from the
// distribution that they are drawn from.
//
// A weight w moves in the direction of its update u once lr |u| passes h, the distance from w to
// the rounding boundary on that side: half a gap. So of given arrays nothing moves if and only if
//   lr < min_i h_i / |u_i|
// but for the roundings of the sum to float32 (by a factor within 1 +- 2^(m - 21), m mantissa bits
// of the format) and for the boundary itself, where ties-to-even decides.
//
// Of arrays drawn from the standard normal distribution, w = Q(x), the share of weights that moves
// is expected to be
//   independent keys:  P(lr) = sum over w of P(Q(x) = w) P(|u| > h(w, sign u) / lr)
//   same key, u = x:   P(lr) = sum over w of P(Q(x) = w and |x| > h(w) / lr)
// and nothing is expected to move where n P(lr) < 1 for n weights. With the same key gap and update
// are tied to each other. In a binade [2^e, 2^(e+1)) of gap g = 2^(e-m) the weight w collects the x
// within g/2 of it, all of which have the threshold (g/2) / |x|: from
//   (g/2) / (2^(e+1) - g/2) = 1 / (2^(m+2) - 1)    at the upper end, to
//   (g/2) / (2^e - g/4)     = 2 / (2^(m+2) - 1)    at the lower end, where cells below are narrower
// whatever e is. Every normal number falls off one cliff, a factor 2 wide.
//
// The expected square of a step is the same sum with d_k^2 - d_(k-1)^2 for each boundary t_k that
// the step may pass, d_k the distance to the k-th neighbour:
//   E(lr) = sum over w, k of (d_k^2 - d_(k-1)^2) P(Q(x) = w, |lr u| > t_k)
// and half of the norm is gone where E(lr) < lr^2 / 4.
#pragma once

#include <span>

#include "numsim/formats/format_spec.h"

namespace numsim::experiments::update_fidelity {

// What is measured, and predicted, at one learning rate of the cliff.
struct NaiveLimits {
  float unmoved = 0;    // greatest float32 rate at which no weight moves; NaN: none up to 1e6
  float half_norm = 0;  // rate at which ||step|| crosses lr ||u|| / 2, see FindHalfNorm; NaN: none
};

// By calls of the naive rule alone. weights are values of the format.
NaiveLimits MeasureNaiveLimits(const FormatSpec& format,
                               std::span<const float> weights,
                               std::span<const float> update);

// min_i h_i / |u_i|; infinity where no weight can move.
double LeastThreshold(const FormatSpec& format,
                      std::span<const float> weights,
                      std::span<const float> update);

// P(lr) and E(lr) as above. Requires a signed format of at most 16 bits.
double MovedShareExpected(const FormatSpec& format, bool same_key, double lr);
double StepSquareExpected(const FormatSpec& format, bool same_key, double lr);

// The rate at which n P(lr) = 1.
double UnmovedExpected(const FormatSpec& format, bool same_key, double elements);
// The rate at which E(lr) = lr^2 / 4.
double HalfNormExpected(const FormatSpec& format, bool same_key);

// P(Z > z) for a standard normal Z, z >= 0; relative error below 1e-12.
double NormalTail(double z);

}  // namespace numsim::experiments::update_fidelity
