// A learned factor of logits, the exponential of a parameter [CLIP]. Rules: tensor.h.
#pragma once

#include "numsim/ops/tensor.h"

namespace numsim {

struct ExponentLimits {
  double low = 0, high = 0;
};

// y = e^t y with t = exponent (1 x 1) brought within the limits.
template <typename T>
void ScaleByExponential(In<T> exponent, const ExponentLimits& limits, MatrixSpan<T> y);

// From the gradient g of the result y: in place, that of what was scaled, e^t g; and of the
// exponent, the sum of y * g in float64. At or beyond a limit a gradient along which a step would
// lead further out is 0 instead, and one that leads back is what it is at the limit. A parameter
// that is put back within the limits after every step, as [OpenCLIP] does, moves alike.
template <typename T>
void ScaleByExponentialGradient(In<T> exponent,
                                const ExponentLimits& limits,
                                In<T> y,
                                MatrixSpan<T> exponent_gradient,
                                MatrixSpan<T> g);

}  // namespace numsim
