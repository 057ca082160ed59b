// The operands of a linear layer's GEMMs: tensors in the precision of a recipe.
#pragma once

#include <optional>
#include <variant>

#include "numsim/gemm/gemm.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/delayed_scale.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/streams.h"

namespace numsim {

// A tensor in the form that a GEMM reads, in the orientation in which the caller stores it: codes
// with scales, or the caller's values if the recipe takes them unchanged.
using OperandData = std::variant<QuantizedMatrix, MatrixSpan<const float>>;

// A view of one.
using OperandView = std::variant<const QuantizedMatrix*, MatrixSpan<const float>>;
OperandView ViewOf(const OperandData& data);

// Returns true if the recipe uses values that are stored like this unchanged: fp32, or bf16 of
// values that are bf16.
bool TakesValues(const OperandRecipe& recipe, Element element);

// Converts `tensor` to the precision of `recipe`, where it lies. The recipe's layout describes the
// operand as it enters the GEMM, that is the tensor's transpose if `transposed`. If recipe.delayed,
// uses the current scale of `delayed`, which must not be null and then records the tensor's absmax.
// Random bits come from stream `random`, at the index of the element in `tensor`. Codes are stored
// in `order`. Reuses the memory of `result` if it held codes.
void MakeOperand(In<float> tensor,
                 const OperandRecipe& recipe,
                 bool transposed,
                 CodeOrder order,
                 RandomStream random,
                 DelayedScale* delayed,
                 OperandData& result);

// Memory for an operand in a container.
struct ContainedOperand {
  Buffer<float> values;   // decoded: float32, or bf16 on a device
  QuantizedMatrix codes;  // the values as codes of the container
};

// Returns a GEMM operand whose vectors are the rows of the tensor, or its columns if `transposed`.
// With a container, its elements are the values of the codes in that format, multiplied by their
// scales if these change along blocks or tiles; other scales stay scales of the operand. An element
// that the container does not hold, because its scale is too large or too small, is rounded to it
// (nearest even). The operand is a view, valid as long as `data` and what that refers to, and until
// the next use of `memory`.
GemmOperand AsOperand(const OperandView& data,
                      bool transposed,
                      const std::optional<Format>& container,
                      ContainedOperand& memory);

// Returns true if one quantised copy serves both uses: a tensor quantised by `rows` has the same
// codes as its transpose quantised by `columns`. This holds if the recipes are equal and their
// scale layout is its own transpose.
bool SharesCodes(const OperandRecipe& rows, const OperandRecipe& columns);

}  // namespace numsim
