// Normalisation of vectors. elementwise.h states the rules of all operations.
//
// A row of x holds x.cols / n vectors of n elements, one after another, and each vector is
// normalised separately. n = x.cols is the usual case; n = head_dim normalises the heads of queries
// and keys. n must divide x.cols. `inverse` (x.rows x x.cols / n) receives one number per vector,
// which the gradient needs; so does `mean`. y may be x, and dx may be g. The gradients of gains and
// biases are overwritten with sums over all vectors, in ascending order within blocks of rows as
// for ColumnSums (elementwise.h).
//
// In float32, sums over a vector are also in float32, in 16 lanes (rows-inl.h). If a sum of squares
// exceeds the float32 range, the factor r is 0.
#pragma once

#include "numsim/backend/matrix.h"

namespace numsim {

// y = gain * x r with r = 1 / sqrt(mean(x^2) + epsilon) [RMSNorm]. gain: 1 x n.
template <typename T>
void RmsNorm(In<T> x, In<T> gain, double epsilon, MatrixSpan<T> inverse, MatrixSpan<T> y);
template <typename T>
void RmsNormGradient(
    In<T> g, In<T> x, In<T> gain, In<T> inverse, MatrixSpan<T> gain_gradient, MatrixSpan<T> dx);

// y = gain * (x - mean(x)) r + bias with r = 1 / sqrt(variance(x) + epsilon), where the variance
// divides by n [LayerNorm]. gain, bias: 1 x n.
template <typename T>
void LayerNorm(In<T> x,
               In<T> gain,
               In<T> bias,
               double epsilon,
               MatrixSpan<T> mean,
               MatrixSpan<T> inverse,
               MatrixSpan<T> y);
template <typename T>
void LayerNormGradient(In<T> g,
                       In<T> x,
                       In<T> gain,
                       In<T> mean,
                       In<T> inverse,
                       MatrixSpan<T> gain_gradient,
                       MatrixSpan<T> bias_gradient,
                       MatrixSpan<T> dx);

// y = x r with r = 1 / max(||x||, 1e-12), where each row is a vector. inverse: x.rows x 1.
template <typename T>
void UnitNorm(In<T> x, MatrixSpan<T> inverse, MatrixSpan<T> y);
// Takes y instead of x. Where the norm of x is below 1e-12, r is treated as a constant.
template <typename T>
void UnitNormGradient(In<T> g, In<T> y, In<T> inverse, MatrixSpan<T> dx);

}  // namespace numsim
