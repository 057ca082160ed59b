// A residual MLP: a residual stream that passes through blocks, each containing an MLP.
//
//   x = P.input(x)                                     if inputs != width
//   x = x + P.blocks.N.mlp(P.blocks.N.norm(x))         for each block; without `norms`: mlp(x)
//   x = P.head(x)                                      if inputs != width
// P is the prefix including its dot, or empty. The tensor names, for activations in this order:
// P.input, P.blocks.N.norm, those of P.blocks.N.mlp (mlp_layer.h), P.blocks.N (the stream after the
// block), P.head.
#pragma once

#include <deque>
#include <string>

#include "numsim/models/internal/linear_factory.h"
#include "numsim/models/internal/mlp_layer.h"
#include "numsim/models/internal/norm_layer.h"

namespace numsim {

struct ResidualMlpOptions {
  size_t layers = 0, width = 0, hidden = 0;
  size_t inputs = 0;   // features per example, and also the number of outputs
  bool norms = false;  // a LayerNorm before each MLP
  bool biases = false;
  double norm_epsilon = 1e-5;
};

template <typename T>
class ResidualMlp {
 public:
  // The weights of linear layers initially have deviation 1 / sqrt(3 inputs).
  ResidualMlp(LinearFactory<T>& linears,
              const std::string& prefix,
              const ResidualMlpOptions& options);
  ~ResidualMlp();

  // Returns the outputs, with the shape of x. x is rows x inputs, contiguous, and the caller must
  // leave it unchanged until Backward. The result lies in memory of this object and is valid until
  // the next Forward.
  MatrixSpan<T> Forward(const Pass<T>& pass, MatrixSpan<T> x);
  // Writes the gradients of all parameters, given the gradient g of the last Forward's result.
  // Overwrites g. May be called once per Forward.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  struct Block;
  LinearLayer<T>* MakeEdge(LinearFactory<T>& linears,
                           const std::string& name,
                           size_t in,
                           size_t out);
  MatrixSpan<T> BlockForward(const Pass<T>& pass, Block& block, MatrixSpan<T> x);
  void BlockBackward(const Pass<T>& pass, Block& block, MatrixSpan<T> g);

  ResidualMlpOptions options_;
  LinearLayer<T>* input_;  // nullptr if inputs == width
  std::deque<Block> blocks_;
  LinearLayer<T>* head_;  // nullptr if inputs == width
  Buffer<T> embedded_, results_;
  Buffer<T> branch_gradient_, normed_gradient_, stream_gradient_;
  MlpScratch<T> mlp_gradients_;
};

}  // namespace numsim
