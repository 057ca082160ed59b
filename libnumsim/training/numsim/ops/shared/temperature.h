// A learned factor of logits, the exponential of a parameter [CLIP]. elementwise.h states the rules
// of all operations.
#pragma once

#include "numsim/backend/matrix.h"

namespace numsim {

// The range to which the exponent is clamped.
struct ExponentLimits {
  double low = 0, high = 0;
};

// y = e^t y, where t is exponent (1 x 1) clamped to the limits.
template <typename T>
void ScaleByExponential(In<T> exponent, const ExponentLimits& limits, MatrixSpan<T> y);

// Computes gradients from the gradient g of the result y. g becomes e^t g, the gradient of the
// input. exponent_gradient receives the sum of y * g, computed in float64. At or beyond a limit it
// is 0 if a step against it would move the exponent further out, and otherwise it is the gradient
// at the limit. A parameter that is clamped after every step, as in [OpenCLIP], moves in the same
// way.
template <typename T>
void ScaleByExponentialGradient(In<T> exponent,
                                const ExponentLimits& limits,
                                In<T> y,
                                MatrixSpan<T> exponent_gradient,
                                MatrixSpan<T> g);

}  // namespace numsim
