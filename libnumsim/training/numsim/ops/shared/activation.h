// Pointwise activation functions. elementwise.h states the rules of all operations.
//
// Bounds of the float32 errors, in units of 2^-24: GELU 4 |x|, its gradient 12 |g|, SwiGLU 4 |y|,
// its gradient 8 |g| times the magnitude of the element in the other half of x. The outputs of
// GELU, ReLU and their gradients may overwrite an input.
#pragma once

#include "numsim/backend/matrix.h"

namespace numsim {

// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GELU in its tanh form [GELU].
template <typename T>
void Gelu(In<T> x, MatrixSpan<T> y);
// dx = g * the derivative at x. Far from zero the derivative is 0 or 1, for any finite x.
template <typename T>
void GeluGradient(In<T> g, In<T> x, MatrixSpan<T> dx);

// y = max(x, 0). The derivative at 0 is 0.
template <typename T>
void Relu(In<T> x, MatrixSpan<T> y);
template <typename T>
void ReluGradient(In<T> g, In<T> x, MatrixSpan<T> dx);

// SwiGLU [SwiGLU]: y (tokens x n) = swish(gate) * linear with swish(z) = z / (1 + e^-z). x is
// tokens x 2n: the gate in its left half, the linear branch in its right half.
template <typename T>
void Swiglu(In<T> x, MatrixSpan<T> y);
// Writes the gradient dx of x (tokens x 2n) from the gradient g of y.
template <typename T>
void SwigluGradient(In<T> g, In<T> x, MatrixSpan<T> dx);

}  // namespace numsim
