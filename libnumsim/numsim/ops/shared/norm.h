// Normalisation of vectors. Rules: tensor.h.
//
// A row of x holds x.cols / n vectors of n elements, one after another, and each is normalised by
// itself: n = x.cols is the usual case, n = head_dim normalises the heads of queries and keys. n
// divides x.cols. `inverse` (x.rows x x.cols / n) receives a number for each vector, which the
// gradient takes again; so does `mean`. y may be x and dx may be g; gradients of gains and biases
// are written: sums over all vectors, in ascending order within the blocks of ColumnSums
// (elementwise.h).
//
// float32: sums over a vector are float32 too, in 16 lanes (rows-inl.h), and a square sum beyond
// its range makes a factor of 0.
#pragma once

#include "numsim/ops/tensor.h"

namespace numsim {

// y = gain * x r with r = 1 / sqrt(mean(x^2) + epsilon) [RMSNorm]. gain: 1 x n.
template <typename T>
void RmsNorm(In<T> x, In<T> gain, double epsilon, MatrixSpan<T> inverse, MatrixSpan<T> y);
template <typename T>
void RmsNormGradient(
    In<T> g, In<T> x, In<T> gain, In<T> inverse, MatrixSpan<T> gain_gradient, MatrixSpan<T> dx);

// y = gain * (x - mean(x)) r + bias, r = 1 / sqrt(variance(x) + epsilon), the variance with 1/n
// [LayerNorm]. gain, bias: 1 x n.
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

// y = x r with r = 1 / max(||x||, 1e-12), a row a vector. inverse: x.rows x 1.
template <typename T>
void UnitNorm(In<T> x, MatrixSpan<T> inverse, MatrixSpan<T> y);
// From y, not x. Below the least norm r counts as constant.
template <typename T>
void UnitNormGradient(In<T> g, In<T> y, In<T> inverse, MatrixSpan<T> dx);

}  // namespace numsim
