// The element-wise arithmetic of optimisers, over a block of a tensor, on one thread and in
// vectors. It is float32: fl rounds to nearest even after every operation, in the order written
// here, and nothing is fused, so the bits are the same on every target. Arrays have n elements each
// and do not overlap unless said.
#pragma once

#include <cstddef>

namespace numsim {

// Weights of a moving average's past and of what is new.
struct AverageRates {
  float keep = 0, share = 1;
};

// a' = fl(fl(keep a) + fl(share x)).
void UpdateAverage(const float* x, size_t n, AverageRates rates, float* average) noexcept;
// v' = fl(fl(keep v) + fl(share fl(x x))).
void UpdateSquareAverage(const float* x, size_t n, AverageRates rates, float* square) noexcept;

// What Adam divides by: the root s = fl(sqrt(fl(v / correction))) of the average square, and
// epsilon.
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

// r = fl(x / max(s, epsilon)), which is x / sqrt(max(v, epsilon^2)) without the square of a small
// number; or with `added` r = fl(x / fl(s + epsilon)). A NaN in v gives NaN.
void GradientRatios(const float* x,
                    const float* v,
                    size_t n,
                    AdamDenominator denominator,
                    bool added,
                    float* ratios) noexcept;

// d = -1 where y = fl(fl(keep m) + fl(share x)) is positive, 1 where it is negative, else 0; NaN
// for NaN. [Lion]
void LionDirection(
    const float* x, const float* m, size_t n, AverageRates rates, float* direction) noexcept;

}  // namespace numsim
