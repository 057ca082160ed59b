// The operands of a linear layer's GEMMs: tensors in the precision of a recipe.
#pragma once

#include <span>
#include <variant>

#include "numsim/gemm/gemm.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/random/streams.h"

namespace numsim {

// A view of a row-major float32 matrix owned by somebody else.
struct MatrixView {
  std::span<const float> values = {};
  MatrixShape shape = {};
};

// A tensor in the form that a GEMM reads, in the orientation in which the caller stores it: codes
// with scales, or the values themselves if the recipe asks for fp32.
using OperandData = std::variant<QuantizedMatrix, MatrixView>;

// Returns true if the recipe uses the values unchanged.
bool TakesValues(const OperandRecipe& recipe);

// Converts `tensor` to the precision of `recipe`. The recipe's layout describes the operand as it
// enters the GEMM, that is the tensor's transpose if `transposed`. If recipe.delayed, uses the
// current scale of `delayed`, which must not be null and then records the tensor's absmax. Random
// bits come from stream `random`, at the index of the element in `tensor`. Reuses the memory of
// `result` if it held codes.
void MakeOperand(const MatrixView& tensor,
                 const OperandRecipe& recipe,
                 bool transposed,
                 RandomStream random,
                 DelayedScale* delayed,
                 OperandData& result);

// Returns a GEMM operand whose vectors are the rows of the tensor, or its columns if `transposed`.
// It is a view, valid as long as `data` and the values that `data` refers to.
GemmOperand AsOperand(const OperandData& data, bool transposed);

// Returns true if one quantised copy serves both uses: a tensor quantised by `rows` has the same
// codes as its transpose quantised by `columns`. This holds if the recipes are equal and their
// scale layout is its own transpose.
bool SharesCodes(const OperandRecipe& rows, const OperandRecipe& columns);

}  // namespace numsim
