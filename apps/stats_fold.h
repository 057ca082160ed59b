// How `numsim stats` reads tensors of three and more dimensions: as stacks of matrices, or as one
// matrix; and the error of a stack.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/quantize/given_scales.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::apps {

enum class Fold {
  kAuto,   // kFirst for the shape of a convolution, else kStack
  kStack,  // the last two dimensions are a matrix; those before them count the matrices
  kFirst,  // one matrix: the first dimension gives the rows, the others the columns
};
// Parses auto, stack or first. Throws Error, listing these, for any other text.
Fold ParseFold(std::string_view text);

// Returns the tensor as matrices. The shape of a convolution, out x in x width (x height), has three
// dimensions with 1 in the second or at most 7 in the last, or more dimensions with at most 32 in each
// after the second.
MatrixStack FoldShape(std::span<const size_t> shape, Fold fold);

// Returns the error of quantising each matrix of the stack on its own. Element i of the stack uses
// the random bits i. `Value` is a type that QuantizationError() takes.
template <typename Value>
auto StackError(std::span<const Value> values, const MatrixStack& stack, QuantizeOptions options) {
  const size_t each = stack.shape.Elements();
  if (stack.matrices == 1) return QuantizationError(values, stack.shape, options);
  const ArrayRandom random = options.random;
  decltype(QuantizationError(values, stack.shape, options)) total;
  for (size_t i = 0; i < stack.matrices; ++i) {
    options.random = random;
    options.random.first_index += i * each;
    total.Merge(QuantizationError(values.subspan(i * each, each), stack.shape, options));
  }
  return total;
}

}  // namespace numsim::apps
