// The operands of a linear layer's GEMMs: tensors in the precision of a recipe.
#pragma once

#include <optional>

#include "numsim/gemm/gemm.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/delayed_scale.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/streams.h"

namespace numsim {

// A view of a tensor in the form that a GEMM reads, in the orientation in which the caller stores it:
// codes with scales, or, if `codes` is null, the caller's values, which the recipe takes unchanged.
struct LinearTensor {
  const QuantizedMatrix* codes = nullptr;
  ConstFloatSpan values;
  bool scaled = true;  // otherwise all scales of the codes are 1, and a GEMM does without them
};

// Returns true if the recipe uses values of that element unchanged, after a Hadamard transform if it has
// one: fp32, or bf16 of values that are bf16.
bool TakesValues(const OperandRecipe& recipe, Element element);

// Returns how a tensor is quantised by the recipe, whose layout describes the operand as it enters
// the GEMM, that is the tensor's transpose if `transposed`. Random bits come from stream `random`, at
// the index of the element in the tensor.
QuantizeOptions OptionsOf(const OperandRecipe& recipe,
                          bool transposed,
                          CodeOrder order,
                          RandomStream random);

// Writes the tensor, Hadamard-transformed along its rows, or along its columns if `transposed`, and
// rounded to `high_precision`. `random` is that of the call of the layer. Runs on the host.
void Transform(ConstFloatSpan tensor,
               const HadamardRecipe& recipe,
               bool transposed,
               RandomStream random,
               const FormatSpec& high_precision,
               MatrixSpan<float> out);

// Converts `tensor` to the precision of `recipe`, after its transform, where it lies, with codes and scales in `memory`
// unless the recipe takes the values. If recipe.delayed, uses the current scale of `delayed`, which
// must not be null and then records the tensor's absmax. For the others see OptionsOf.
LinearTensor MakeOperand(ConstFloatSpan tensor,
                         const OperandRecipe& recipe,
                         bool transposed,
                         CodeOrder order,
                         RandomStream random,
                         DelayedScale* delayed,
                         QuantizedMatrix& memory);

// Returns a GEMM operand whose vectors are the rows of the tensor, or its columns if `transposed`.
// With a container, its elements are the values of the codes in that format, multiplied by their
// scales if these change along blocks or tiles; other scales stay scales of the operand. An element
// that the container does not hold, because its scale is too large or too small, is rounded to it
// (nearest even). The operand is a view, valid as long as what `tensor` refers to, and until the next
// use of `memory`, which holds the contained codes or values.
struct ContainedOperand {
  FloatBuffer values;     // decoded: float32, or bf16
  QuantizedMatrix codes;  // the values as codes of another container
};
GemmOperand AsOperand(const LinearTensor& tensor,
                      bool transposed,
                      const std::optional<Format>& container,
                      ContainedOperand& memory);

// Returns true if one quantised copy serves both uses: a tensor quantised by `rows` has the same
// codes as its transpose quantised by `columns`. This holds if the recipes are equal, their scale
// layout is its own transpose, and there is no Hadamard transform.
bool SharesCodes(const OperandRecipe& rows, const OperandRecipe& columns);

}  // namespace numsim
