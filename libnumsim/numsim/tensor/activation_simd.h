// The parts of activation.h that one thread does, for float32, in vectors. Bits do not depend on
// the SIMD target; the backend "scalar" takes the best one too.
#pragma once

#include "numsim/tensor/tensor.h"

namespace numsim {

// Shapes as in activation.h. Outputs may be inputs of the same shape.
void GeluPart(MatrixRef<const float> x, MatrixRef<float> y) noexcept;
void GeluGradientPart(MatrixRef<const float> g,
                      MatrixRef<const float> x,
                      MatrixRef<float> dx) noexcept;
void ReluPart(MatrixRef<const float> x, MatrixRef<float> y) noexcept;
void ReluGradientPart(MatrixRef<const float> g,
                      MatrixRef<const float> x,
                      MatrixRef<float> dx) noexcept;
void SwigluPart(MatrixRef<const float> x, MatrixRef<float> y) noexcept;
void SwigluGradientPart(MatrixRef<const float> g,
                        MatrixRef<const float> x,
                        MatrixRef<float> dx) noexcept;

}  // namespace numsim
