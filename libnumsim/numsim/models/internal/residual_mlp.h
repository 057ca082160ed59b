// Residual MLP: a stream that passes through blocks of an MLP each.
//
//   x = P.input(x)                                     where inputs are not the width
//   x = x + P.blocks.N.mlp(P.blocks.N.norm(x))         for each block; without `norms`: mlp(x)
//   x = P.head(x)                                      where inputs are not the width
// with P the prefix and its dot, or nothing. Points, as activations in the order of this list:
// P.input, P.blocks.N.norm, the points of P.blocks.N.mlp (mlp_layer.h), P.blocks.N (the stream
// behind the block), P.head.
#pragma once

#include <deque>
#include <string>

#include "numsim/models/internal/linear_factory.h"
#include "numsim/models/internal/mlp_layer.h"
#include "numsim/models/internal/norm_layer.h"

namespace numsim {

struct ResidualMlpOptions {
  size_t layers = 0, width = 0, hidden = 0;
  size_t inputs = 0;   // features of an example, and as many results
  bool norms = false;  // a LayerNorm before each MLP
  bool biases = false;
  double norm_epsilon = 1e-5;
};

template <typename T>
class ResidualMlp {
 public:
  // Weights of linear layers start with deviation 1 / sqrt(3 inputs).
  ResidualMlp(LinearFactory<T>& linears,
              const std::string& prefix,
              const ResidualMlpOptions& options);
  ~ResidualMlp();

  // x: rows x inputs, contiguous; the caller keeps it as it is until Backward. Returns as many
  // results, in memory of this object that stays until the next Forward.
  MatrixSpan<T> Forward(const Pass<T>& pass, MatrixSpan<T> x);
  // Writes the gradients of all parameters from g, that of what the last Forward returned; once. g
  // is overwritten.
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
  LinearLayer<T>* input_;  // nullptr: none
  std::deque<Block> blocks_;
  LinearLayer<T>* head_;  // nullptr: none
  Buffer<T> embedded_, results_;
  Buffer<T> branch_gradient_, normed_gradient_, stream_gradient_;
  MlpScratch<T> mlp_gradients_;
};

}  // namespace numsim
