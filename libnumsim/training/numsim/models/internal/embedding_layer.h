// Embedding of tokens, optionally with learned positions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/parameter.h"
#include "numsim/models/pass.h"
#include "numsim/ops/shared/index_column.h"

namespace numsim {

struct EmbeddingOptions {
  size_t vocabulary = 0, width = 0;
  size_t positions = 0;  // maximum sequence length; 0: no positions
  Initial token{}, position{};
};

// Looks up a table row per token and adds the learned position, if there is one.
template <typename T>
class EmbeddingLayer {
 public:
  // Adds NAME.tokens (vocabulary x width) and, with positions, NAME.positions (positions x width).
  EmbeddingLayer(ParameterList<T>& parameters, std::string name, const EmbeddingOptions& options);

  // Returns one row per token, in the order of the tokens, which are sequences of `length` tokens
  // one after another. The result lies in memory of this layer, is valid until the next Forward,
  // and is observed as tensor NAME. Copies the tokens. Requires 0 <= tokens < vocabulary and, with
  // positions, length <= positions.
  MatrixSpan<T> Forward(const Pass<T>& pass, std::span<const int32_t> tokens, size_t length);
  // Observes g as tensor NAME, then writes the gradients of the tables.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  std::string name_;
  Parameter<T>* tokens_;
  Parameter<T>* positions_;  // nullptr if there are no positions
  IndexColumn ids_;
  size_t length_ = 0;
  Buffer<T> y_;
};

}  // namespace numsim
