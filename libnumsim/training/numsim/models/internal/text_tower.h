// A causal text transformer without its head [CLIP]. It maps each sequence to one vector.
//
// Tensors and parameters are named P.embedding (embedding_layer.h), P.blocks.N... (transformer.h)
// and P.final_norm: the row of each sequence's end token after the last block, normalised.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/internal/embedding_layer.h"
#include "numsim/models/internal/transformer.h"
#include "numsim/ops/shared/index_column.h"

namespace numsim {

template <typename T>
class TextTower {
 public:
  // `prefix` is "text.". The maximum length of the blocks is the number of positions of the
  // embedding.
  TextTower(LinearFactory<T>& linears,
            const std::string& prefix,
            const EmbeddingOptions& embedding,
            const TransformerConfig& blocks);

  // Returns one row per sequence. `tokens` holds sequences of `length` tokens one after another;
  // `ends` holds the position of the end token per sequence. The result lies in memory of this
  // tower and is valid until the next Forward. Copies tokens and ends.
  MatrixSpan<T> Forward(const Pass<T>& pass,
                        std::span<const int32_t> tokens,
                        std::span<const int32_t> ends,
                        size_t length);
  // Writes the gradients of all parameters, given the gradient g of the last Forward's result. An
  // observer may change g. May be called once per Forward.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  size_t width_;
  EmbeddingLayer<T> embedding_;
  Transformer<T> blocks_;
  NormLayer<T> final_norm_;
  IndexColumn ends_;
  size_t length_ = 0;
  Buffer<T> taken_, taken_gradient_, stream_gradient_;
};

}  // namespace numsim
