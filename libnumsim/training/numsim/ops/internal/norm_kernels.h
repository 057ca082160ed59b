// The operations of norm.h by kernels. row_kernels.h says what `launch` and `block_sums` are.
#pragma once

#include "numsim/ops/internal/row_kernels.h"

namespace numsim {

template <class Launch>
void RmsNormBy(const Launch& launch,
               In<float> x,
               In<float> gain,
               double epsilon,
               MatrixSpan<float> inverse,
               MatrixSpan<float> y) {
  const RmsNormRule rule{x, gain.data, gain.cols, epsilon, inverse, y};
  LaunchVectors(launch, x.rows, inverse.cols, rule);
}

template <class Launch>
void RmsNormGradientBy(const Launch& launch,
                       In<float> g,
                       In<float> x,
                       In<float> gain,
                       In<float> inverse,
                       float* block_sums,
                       MatrixSpan<float> gain_gradient,
                       MatrixSpan<float> dx) {
  const RmsNormGradientRule rule{g, x, gain.data, gain.cols, inverse, dx};
  const std::array sums = {gain_gradient};
  LaunchVectorSums(launch, x.rows, inverse.cols, rule, block_sums, sums);
}

template <class Launch>
void LayerNormBy(const Launch& launch,
                 In<float> x,
                 In<float> gain,
                 In<float> bias,
                 double epsilon,
                 MatrixSpan<float> mean,
                 MatrixSpan<float> inverse,
                 MatrixSpan<float> y) {
  const LayerNormRule rule{x, gain.data, bias.data, gain.cols, epsilon, mean, inverse, y};
  LaunchVectors(launch, x.rows, inverse.cols, rule);
}

template <class Launch>
void LayerNormGradientBy(const Launch& launch,
                         In<float> g,
                         In<float> x,
                         In<float> gain,
                         In<float> mean,
                         In<float> inverse,
                         float* block_sums,
                         MatrixSpan<float> gain_gradient,
                         MatrixSpan<float> bias_gradient,
                         MatrixSpan<float> dx) {
  const LayerNormGradientRule rule{g, x, gain.data, gain.cols, mean, inverse, dx};
  const std::array sums = {gain_gradient, bias_gradient};
  LaunchVectorSums(launch, x.rows, inverse.cols, rule, block_sums, sums);
}

template <class Launch>
void UnitNormBy(const Launch& launch, In<float> x, MatrixSpan<float> inverse, MatrixSpan<float> y) {
  LaunchVectors(launch, x.rows, 1, UnitNormRule{x, x.cols, inverse, y});
}

template <class Launch>
void UnitNormGradientBy(
    const Launch& launch, In<float> g, In<float> y, In<float> inverse, MatrixSpan<float> dx) {
  LaunchVectors(launch, y.rows, 1, UnitNormGradientRule{g, y, y.cols, inverse, dx});
}

}  // namespace numsim
