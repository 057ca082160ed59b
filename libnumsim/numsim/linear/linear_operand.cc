#include "numsim/linear/linear_operand.h"

#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantize.h"

namespace numsim {
namespace {

// Decodes codes to float32 or, on a device, to bf16 if that is the container.
MatrixSpan<float> Decoded(const QuantizedMatrix& codes,
                          bool with_scales,
                          const Format& container,
                          Buffer<float>& memory) {
  const bool bf16 = !codes.place().IsHost() && container.spec == kBf16;
  const Element element = bf16 ? Element::kBfloat16 : Element::kFloat32;
  memory.EnsureAt(codes.place(), element);
  const MatrixSpan<float> values = memory.Resize(codes.shape.rows, codes.shape.cols);
  if (with_scales) {
    Dequantize(codes, values);
  } else {
    DecodeCodes(codes, values);
  }
  return values;
}

}  // namespace

OperandView ViewOf(const OperandData& data) {
  if (const auto* codes = std::get_if<QuantizedMatrix>(&data)) return codes;
  return std::get<MatrixSpan<const float>>(data);
}

bool TakesValues(const OperandRecipe& recipe, Element element) {
  if (!recipe.Unscaled()) return false;
  return recipe.format.spec == kFp32 ||
         (element == Element::kBfloat16 && recipe.format.spec == kBf16 &&
          recipe.overflow == Overflow::kNonsaturate);
}

void MakeOperand(In<float> tensor,
                 const OperandRecipe& recipe,
                 bool transposed,
                 CodeOrder order,
                 RandomStream random,
                 DelayedScale* delayed,
                 OperandData& result) {
  if (TakesValues(recipe, tensor.element)) {
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
  options.order = order;
  if (!std::holds_alternative<QuantizedMatrix>(result)) result.emplace<QuantizedMatrix>();
  auto& codes = std::get<QuantizedMatrix>(result);
  if (!recipe.delayed) return QuantizeInto(tensor, options, codes);
  NUMSIM_REQUIRE(delayed != nullptr, "MakeOperand: no delayed scale for {}", recipe.format.name);
  QuantizeUnder(*delayed, tensor, options, codes);
}

GemmOperand AsOperand(const OperandView& data,
                      bool transposed,
                      const std::optional<Format>& container,
                      ContainedOperand& memory) {
  if (const auto* values = std::get_if<MatrixSpan<const float>>(&data)) {
    return AsOperand(*values, transposed);
  }
  const QuantizedMatrix& codes = *std::get<const QuantizedMatrix*>(data);
  const GemmOperand operand = AsOperand(codes, transposed);
  if (!container.has_value()) return operand;
  const bool blocks = codes.layout.block != 0;
  if (codes.format == container->spec && !blocks) return operand;
  const MatrixSpan<float> values = Decoded(codes, blocks, *container, memory.values);
  GemmOperand contained;
  if (values.element == Element::kBfloat16) {
    contained = AsOperand(values, transposed);
  } else {
    QuantizeOptions options;
    options.format = container->spec;
    options.overflow = Overflow::kNonsaturate;
    options.scale_rule = ScaleRule::kNone;
    QuantizeInto(values, options, memory.codes);
    contained = AsOperand(memory.codes, transposed);
    contained.scales = {};
  }
  if (!blocks) contained.scales = operand.scales;
  return contained;
}

bool SharesCodes(const OperandRecipe& rows, const OperandRecipe& columns) {
  return rows == columns && Transposed(rows.layout) == rows.layout;
}

}  // namespace numsim
