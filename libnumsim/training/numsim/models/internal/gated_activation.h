// The activation functions of a gated MLP: SwiGLU and what keeps its outliers from the quantiser of
// the next linear layer.
#pragma once

#include <span>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/models/model_config.h"

namespace numsim {

// One activation with what its gradient needs. In exact arithmetic the two Smooth-SwiGLUs compute
// what SwiGLU computes, and so do their gradients: the scale depends on the inputs, but the result
// does not depend on the scale. In float64 kSmoothSwiglu is kSwiglu: scaling by powers of two
// changes no bit.
template <typename T>
class GatedActivation {
 public:
  // `kind` is not kGelu.
  GatedActivation(MlpKind kind, Place place);

  // y (tokens x n) from x (tokens x 2n): the gate in its left half, the linear branch in its right
  // half. The caller must leave x unchanged until Backward.
  void Forward(In<T> x, MatrixSpan<T> y);
  // Writes the gradient dx of x. g is the gradient of y under kSmoothSwigluToken, and of y without
  // its factors under kSmoothSwiglu.
  void Backward(In<T> g, In<T> x, MatrixSpan<T> dx) const;

  // Returns the factor of each token's row of the next layer's output; empty: 1.
  std::span<const T> TokenFactors() const { return tokens_; }
  // Returns the factor of each column of y that undoes the scaling, a power of two; empty: 1.
  std::span<const float> ChannelFactors() const { return channels_; }

 private:
  MlpKind kind_;
  Buffer<T> inputs_;  // of SwiGLU under kSmoothSwigluToken and kClampedSwiglu
  std::vector<T> tokens_;
  std::vector<float> channels_;
};

// Multiplies each row by its factor. Does nothing without factors.
template <typename T>
void ScaleRows(std::span<const T> factors, MatrixSpan<T> matrix);

}  // namespace numsim
