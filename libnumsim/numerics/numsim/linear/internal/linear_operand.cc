#include "numsim/linear/internal/linear_operand.h"

#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantize.h"

namespace numsim {
namespace {

// Decodes codes to float32, or to bf16 if that is the container.
FloatSpan Decoded(const QuantizedMatrix& codes,
                  bool with_scales,
                  const Format& container,
                  FloatBuffer& memory) {
  const bool bf16 = container.spec == kBf16;
  memory.EnsureAt(codes.place(), bf16 ? Element::kBfloat16 : Element::kFloat32);
  const FloatSpan values = memory.Renew(codes.shape.rows, codes.shape.cols);
  if (with_scales) {
    Dequantize(codes, values);
  } else {
    DecodeCodes(codes, values);
  }
  return values;
}

// The streams of an operand o are 8 * stream + o, which leaves two to signs.
constexpr uint64_t kRedrawnSigns = 6, kRandomSigns = 7;

HadamardSigns SignsOf(const HadamardRecipe& recipe, RandomStream random) {
  switch (recipe.source) {
    case HadamardSource::kMask:
      break;
    case HadamardSource::kRandom:
      return DrawSigns({random.seed, kRandomSigns});
    case HadamardSource::kRedrawn:
      return DrawSigns({random.seed, 8 * random.stream + kRedrawnSigns});
  }
  return RepeatedSigns(recipe.mask);
}

}  // namespace

bool TakesValues(const OperandRecipe& recipe, Element element) {
  if (!recipe.Unscaled()) return false;
  return recipe.format.spec == kFp32 ||
         (element == Element::kBfloat16 && recipe.format.spec == kBf16 &&
          recipe.overflow == Overflow::kNonsaturate);
}

void Transform(ConstFloatSpan tensor,
               const HadamardRecipe& recipe,
               bool transposed,
               RandomStream random,
               const FormatSpec& high_precision,
               MatrixSpan<float> out) {
  HadamardTransform(tensor.Float32().Span(),
                    tensor.Shape(),
                    recipe.size,
                    SignsOf(recipe, random),
                    transposed ? HadamardAxis::kColumns : HadamardAxis::kRows,
                    out.Span());
  if (high_precision == kFp32) return;
  FakeQuantize(MakeEncodePlan(high_precision, {}, Overflow::kNonsaturate), out, out);
}

QuantizeOptions OptionsOf(const OperandRecipe& recipe,
                          bool transposed,
                          CodeOrder order,
                          RandomStream random) {
  QuantizeOptions options;
  options.format = recipe.format.spec;
  options.rounding = recipe.rounding;
  options.overflow = recipe.overflow;
  options.layout = transposed ? Transposed(recipe.layout) : recipe.layout;
  options.scale_rule = recipe.scale_rule;
  options.random.stream = random;
  options.order = order;
  options.correction_run = recipe.hadamard.size;
  return options;
}

LinearTensor MakeOperand(ConstFloatSpan tensor,
                         const OperandRecipe& recipe,
                         bool transposed,
                         CodeOrder order,
                         RandomStream random,
                         DelayedScale* delayed,
                         QuantizedMatrix& memory) {
  if (TakesValues(recipe, tensor.element)) return {nullptr, tensor};
  const QuantizeOptions options = OptionsOf(recipe, transposed, order, random);
  if (!recipe.delayed) {
    QuantizeInto(tensor, options, memory);
  } else {
    NUMSIM_REQUIRE(delayed != nullptr, "MakeOperand: no delayed scale for {}", recipe.format.name);
    QuantizeUnder(*delayed, tensor, options, memory);
  }
  return {&memory, {}, !recipe.Unscaled()};
}

GemmOperand AsOperand(const LinearTensor& tensor,
                      bool transposed,
                      const std::optional<Format>& container,
                      ContainedOperand& memory) {
  if (tensor.codes == nullptr) return AsOperand(tensor.values, transposed);
  const QuantizedMatrix& codes = *tensor.codes;
  GemmOperand operand = AsOperand(codes, transposed);
  // Segments stay: their sums are added one by one, also where all scales are 1.
  if (!tensor.scaled && operand.scales.segment == 0) operand.scales = {};
  if (!container.has_value()) return operand;
  const bool blocks = codes.layout.block != 0;
  if (codes.format == container->spec && !blocks) return operand;
  const FloatSpan values = Decoded(codes, blocks, *container, memory.values);
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
  return rows == columns && rows.hadamard.size == 0 && Transposed(rows.layout) == rows.layout;
}

}  // namespace numsim
