// A causal text transformer without its head [CLIP]: from sequences to one vector each.
//
// Points and parameters: P.embedding (embedding_layer.h), P.blocks.N... (transformer.h) and
// P.final_norm, the row of each sequence's end token behind the last block, normalised.
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
  // `prefix`: "text.". The length of the blocks is the number of positions of the embedding.
  TextTower(LinearFactory<T>& linears,
            const std::string& prefix,
            const EmbeddingOptions& embedding,
            const TransformerConfig& blocks);

  // tokens: sequences of `length`, one after another; ends: the place of each one's end token.
  // Returns a row for each sequence, in memory of this tower that stays until the next Forward.
  // Copies tokens and ends.
  MatrixSpan<T> Forward(const Pass<T>& pass,
                        std::span<const int32_t> tokens,
                        std::span<const int32_t> ends,
                        size_t length);
  // Writes the gradients of all parameters from g, that of what the last Forward returned; once. g
  // may be changed by an observer.
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
