// The parts of norm.h that one thread does, for float32, in vectors. Bits do not depend on the SIMD
// target; the backend "scalar" takes the best one too.
#pragma once

#include "numsim/tensor/tensor.h"

namespace numsim {

// Shapes as in norm.h; vectors are as long as gain. y and dx may be inputs of the same shape. Sums
// of gradients are added to, one vector after another.
void RmsNormPart(MatrixRef<const float> x,
                 MatrixRef<const float> gain,
                 double epsilon,
                 MatrixRef<float> inverse,
                 MatrixRef<float> y) noexcept;
void RmsNormGradientPart(MatrixRef<const float> g,
                         MatrixRef<const float> x,
                         MatrixRef<const float> gain,
                         MatrixRef<const float> inverse,
                         float* gain_sums,
                         MatrixRef<float> dx) noexcept;
void LayerNormPart(MatrixRef<const float> x,
                   MatrixRef<const float> gain,
                   MatrixRef<const float> bias,
                   double epsilon,
                   MatrixRef<float> mean,
                   MatrixRef<float> inverse,
                   MatrixRef<float> y) noexcept;
void LayerNormGradientPart(MatrixRef<const float> g,
                           MatrixRef<const float> x,
                           MatrixRef<const float> gain,
                           MatrixRef<const float> mean,
                           MatrixRef<const float> inverse,
                           float* gain_sums,
                           float* bias_sums,
                           MatrixRef<float> dx) noexcept;
void UnitNormPart(MatrixRef<const float> x, MatrixRef<float> inverse, MatrixRef<float> y) noexcept;
void UnitNormGradientPart(MatrixRef<const float> g,
                          MatrixRef<const float> y,
                          MatrixRef<const float> inverse,
                          MatrixRef<float> dx) noexcept;

// Of UnitNorm.
inline constexpr double kLeastNorm = 1e-12;

}  // namespace numsim
