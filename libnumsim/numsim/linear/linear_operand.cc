#include "numsim/linear/linear_operand.h"

#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantize.h"

namespace numsim {

bool TakesValues(const OperandRecipe& recipe) {
  return recipe.Unscaled() && recipe.format.spec == kFp32;
}

void MakeOperand(const MatrixView& tensor,
                 const OperandRecipe& recipe,
                 bool transposed,
                 RandomStream random,
                 DelayedScale* delayed,
                 OperandData& result) {
  if (TakesValues(recipe)) {
    result = tensor;
    return;
  }
  QuantizeOptions options;
  options.format = recipe.format.spec;
  options.rounding = recipe.rounding;
  options.overflow = recipe.overflow;
  options.layout = transposed ? Transposed(recipe.layout) : recipe.layout;
  options.scale_rule = recipe.scale_rule;
  options.random.stream = random;
  if (!std::holds_alternative<QuantizedMatrix>(result)) result.emplace<QuantizedMatrix>();
  auto& codes = std::get<QuantizedMatrix>(result);
  if (!recipe.delayed) return QuantizeInto(tensor.values, tensor.shape, options, codes);
  NUMSIM_REQUIRE(delayed != nullptr, "MakeOperand: no delayed scale for {}", recipe.format.name);
  QuantizeUnder(delayed->Current(), tensor.values, tensor.shape, options, codes);
  delayed->Record(AbsmaxOfAll(tensor.values));
}

GemmOperand AsOperand(const OperandData& data, bool transposed) {
  if (const auto* matrix = std::get_if<QuantizedMatrix>(&data)) {
    return AsOperand(*matrix, transposed);
  }
  const MatrixView& tensor = std::get<MatrixView>(data);
  GemmOperand result;
  result.format = kFp32;
  result.values = tensor.values;
  result.rows = transposed ? tensor.shape.cols : tensor.shape.rows;
  result.inner = transposed ? tensor.shape.rows : tensor.shape.cols;
  result.transposed = transposed;
  return result;
}

bool SharesCodes(const OperandRecipe& rows, const OperandRecipe& columns) {
  return rows == columns && Transposed(rows.layout) == rows.layout;
}

}  // namespace numsim
