// Pointwise nonlinearities. Rules: tensor.h.
//
// Errors of float32, in units of 2^-24: GELU 4 |x|, its gradient 12 |g|, SwiGLU 4 |y|, its gradient
// 8 |g| times the other half. GELU, ReLU and their gradients may write over an input.
#pragma once

#include "numsim/ops/tensor.h"

namespace numsim {

// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GELU in its tanh form [GELU].
template <typename T>
void Gelu(In<T> x, MatrixSpan<T> y);
// dx = g * the derivative at x, which is 0 or 1 far from zero, whatever the size of a finite x.
template <typename T>
void GeluGradient(In<T> g, In<T> x, MatrixSpan<T> dx);

// max(x, 0), whose derivative at 0 is 0.
template <typename T>
void Relu(In<T> x, MatrixSpan<T> y);
template <typename T>
void ReluGradient(In<T> g, In<T> x, MatrixSpan<T> dx);

// SwiGLU [SwiGLU]: x is tokens x 2n, the gate in its left half and the linear branch in its right;
// y (tokens x n) = swish(gate) * linear, swish(z) = z / (1 + e^-z).
template <typename T>
void Swiglu(In<T> x, MatrixSpan<T> y);
// dx: tokens x 2n.
template <typename T>
void SwigluGradient(In<T> g, In<T> x, MatrixSpan<T> dx);

}  // namespace numsim
