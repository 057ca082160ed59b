// The element-wise arithmetic of optimisers, over a block of a tensor: vectorised, on one thread.
// It is float32 arithmetic: fl rounds to nearest even after every operation, in the order written
// here, and nothing is fused, so the bits are the same on every target. Arrays have n elements each
// and do not overlap.
#pragma once

#include <cstddef>

namespace numsim {

// Weights of a moving average: `keep` of its old value, `share` of the new sample.
struct AverageRates {
  float keep = 0, share = 1;
};

// a' = fl(fl(keep a) + fl(share x)).
void UpdateAverage(const float* x, size_t n, AverageRates rates, float* average) noexcept;
// v' = fl(fl(keep v) + fl(share fl(x x))).
void UpdateSquareAverage(const float* x, size_t n, AverageRates rates, float* square) noexcept;

// The two terms of Adam's denominator: the root s = fl(sqrt(fl(v / correction))) of the average
// square, and epsilon.
struct AdamDenominator {
  float correction = 1;
  float epsilon = 0;
};

// d = -fl(fl(m / m_correction) / fl(s + epsilon)).
void AdamDirection(const float* m,
                   const float* v,
                   size_t n,
                   float m_correction,
                   AdamDenominator denominator,
                   float* direction) noexcept;

// r = fl(x / max(s, epsilon)), which equals x / sqrt(max(v, epsilon^2)) without squaring a small
// number; with `added`, r = fl(x / fl(s + epsilon)). A NaN in v gives NaN.
void GradientRatios(const float* x,
                    const float* v,
                    size_t n,
                    AdamDenominator denominator,
                    bool added,
                    float* ratios) noexcept;

// With y = fl(fl(keep m) + fl(share x)): d = -1 if y > 0, 1 if y < 0, 0 if y is zero, NaN if y is
// NaN. [Lion]
void LionDirection(
    const float* x, const float* m, size_t n, AverageRates rates, float* direction) noexcept;

}  // namespace numsim
