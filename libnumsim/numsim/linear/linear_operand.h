// The operands of a linear layer's products: tensors in the precision of a recipe.
#pragma once

#include <span>
#include <variant>

#include "numsim/gemm/gemm.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/random/streams.h"

namespace numsim {

// A row-major float32 matrix that somebody else owns.
struct MatrixView {
  std::span<const float> values;
  MatrixShape shape;
};

// A tensor as a product takes it, in the orientation in which the caller stores it: codes with
// scales, or the values themselves where the recipe asks for fp32.
using OperandData = std::variant<QuantizedMatrix, MatrixView>;

// True where the recipe takes the values as they are.
bool TakesValues(const OperandRecipe& recipe);

// `tensor` in the precision of `recipe`, whose layout is that of the operand as it enters the
// product: of the tensor's transpose when `transposed`. Under delayed scaling by the current scale
// of `delayed`, which then records the tensor. Draws are those of stream `random`, by the index of
// the element in `tensor`. The memory of `result` is used again where it held codes. Requires
// `delayed` where recipe.delayed.
void MakeOperand(const MatrixView& tensor,
                 const OperandRecipe& recipe,
                 bool transposed,
                 RandomStream random,
                 DelayedScale* delayed,
                 OperandData& result);

// The rows of the tensor as the vectors of a product, or its columns when `transposed`. A view that
// holds as long as `data` and what it views.
GemmOperand AsOperand(const OperandData& data, bool transposed);

// True if a tensor made under `rows`, not transposed, is also the operand that `columns` makes of
// the same tensor transposed.
bool SharesCodes(const OperandRecipe& rows, const OperandRecipe& columns);

}  // namespace numsim
