// Embedding of tokens, with learned positions where asked for.
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
  size_t positions = 0;  // longest sequence; 0: no positions
  Initial token{}, position{};
};

template <typename T>
class EmbeddingLayer {
 public:
  // Adds NAME.tokens (vocabulary x width) and, with positions, NAME.positions (positions x width).
  EmbeddingLayer(ParameterList<T>& parameters, std::string name, const EmbeddingOptions& options);

  // Returns a row for each token, sequences of `length` tokens one after another, in memory of this
  // layer that stays until the next Forward, and shows it at point NAME. Copies the tokens.
  // Requires 0 <= tokens < vocabulary, and length <= positions where there are any.
  MatrixSpan<T> Forward(const Pass<T>& pass, std::span<const int32_t> tokens, size_t length);
  // Shows g at point NAME, then writes the gradients of the tables.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  std::string name_;
  Parameter<T>* tokens_;
  Parameter<T>* positions_;  // nullptr: none
  IndexColumn ids_;
  size_t length_ = 0;
  Buffer<T> y_;
};

}  // namespace numsim
