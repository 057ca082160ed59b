#include "numsim/linear/internal/linear_call.h"

#include <utility>

#include "numsim/base/error.h"
#include "numsim/gemm/gemm_quantized.h"

namespace numsim {
namespace {

enum Tensor : size_t { kX, kW, kG };

struct OperandPlace {
  LinearStep step;
  Tensor tensor;
  bool transposed;  // the operand is the tensor's transpose
};

constexpr OperandPlace kPlaces[] = {
    {LinearStep::kQuantizeX, kX, false},
    {LinearStep::kQuantizeW, kW, false},
    {LinearStep::kQuantizeG, kG, false},
    {LinearStep::kQuantizeWTransposed, kW, true},
    {LinearStep::kQuantizeGTransposed, kG, true},
    {LinearStep::kQuantizeXTransposed, kX, true},
};

constexpr LinearStep kProductSteps[] = {LinearStep::kForwardProduct,
                                        LinearStep::kInputGradientProduct,
                                        LinearStep::kWeightGradientProduct};

const KeptMatrix& Kept(const LinearKept& kept, size_t tensor) { return kept.matrices[tensor]; }

// The values that were kept, the layer's own or the caller's. Requires that these are not codes.
MatrixView KeptValues(const KeptMatrix& kept, MatrixShape shape) {
  if (const auto* view = std::get_if<MatrixView>(&kept.data)) return *view;
  return {std::get<std::vector<float>>(kept.data), shape};
}

GemmOperand AsOperand(const KeptMatrix& kept, MatrixShape shape, bool transposed) {
  if (const auto* matrix = std::get_if<QuantizedMatrix>(&kept.data)) {
    return numsim::AsOperand(*matrix, transposed);
  }
  return numsim::AsOperand(OperandData(KeptValues(kept, shape)), transposed);
}

// Moves `data` into `kept`, whose old memory it gets; values that may change are copied.
void KeepOperand(const char* name,
                 const OperandRecipe& recipe,
                 bool stays,
                 OperandData& data,
                 KeptMatrix& kept) {
  kept.name = name;
  kept.format = recipe.format.name;
  kept.scaled = !recipe.Unscaled();
  if (auto* matrix = std::get_if<QuantizedMatrix>(&data)) {
    if (!std::holds_alternative<QuantizedMatrix>(kept.data)) kept.data.emplace<QuantizedMatrix>();
    std::swap(*matrix, std::get<QuantizedMatrix>(kept.data));
    return;
  }
  const MatrixView& view = std::get<MatrixView>(data);
  if (stays) {
    kept.data = view;
    return;
  }
  if (!std::holds_alternative<std::vector<float>>(kept.data)) {
    kept.data.emplace<std::vector<float>>();
  }
  std::get<std::vector<float>>(kept.data).assign(view.values.begin(), view.values.end());
}

}  // namespace

const OperandRecipe& LinearCall::Recipe(LinearOperand operand) const {
  const auto index = static_cast<size_t>(operand);
  const ProductRecipe& product = recipe_.products[index / 2];
  return index % 2 == 0 ? product.a : product.b;
}

OperandData& LinearCall::Make(LinearOperand operand, const MatrixView& tensor) {
  if (TakesValues(Recipe(operand))) {
    OperandData& values = workspace_.operands[static_cast<size_t>(operand)];
    values = tensor;
    return values;
  }
  const StepScope scope(observer_, kPlaces[static_cast<size_t>(operand)].step);
  return MakeWithinStep(operand, tensor);
}

OperandData& LinearCall::MakeWithinStep(LinearOperand operand, const MatrixView& tensor) {
  const auto index = static_cast<size_t>(operand);
  const OperandPlace& place = kPlaces[index];
  const OperandRecipe& recipe = Recipe(operand);
  OperandData& result = workspace_.operands[index];
  MakeOperand(tensor,
              recipe,
              place.transposed,
              {random_.seed, 8 * random_.stream + index},
              recipe.delayed ? &delayed_[place.tensor] : nullptr,
              result);
  if (observer_ != nullptr) {
    if (const auto* codes = std::get_if<QuantizedMatrix>(&result)) {
      observer_->Quantised(operand, tensor, *codes);
    }
  }
  return result;
}

void LinearCall::Multiply(Product product,
                          const GemmOperand& a,
                          const GemmOperand& b,
                          std::span<float> out) {
  const StepScope scope(observer_, kProductSteps[static_cast<size_t>(product)]);
  Gemm(a, b, recipe_[product].accumulator, out);
}

OperandRecipe LinearCall::KeptRecipe() const {
  return recipe_.keeps == LinearKeeps::kQuantized ? Recipe(LinearOperand::kForwardX)
                                                  : HighPrecision(recipe_.high_precision);
}

void LinearCall::Keep(const MatrixView& x, bool x_stays, LinearKept& kept) {
  const bool keeps_w = recipe_.keeps == LinearKeeps::kQuantized;
  kept.matrices.resize(keeps_w ? 2 : 1);
  const OperandRecipe recipe = KeptRecipe();
  const bool made = recipe == Recipe(LinearOperand::kForwardX);
  if (made && !TakesValues(recipe)) {
    OperandData& operand = workspace_.operands[static_cast<size_t>(LinearOperand::kForwardX)];
    KeepOperand("X", recipe, false, operand, kept.matrices[kX]);
  } else {
    const StepScope scope(observer_, LinearStep::kKeepX);
    MakeOperand(x, recipe, false, {}, nullptr, workspace_.kept_x);
    KeepOperand("X", recipe, x_stays, workspace_.kept_x, kept.matrices[kX]);
  }
  if (keeps_w) {
    OperandData& operand = workspace_.operands[static_cast<size_t>(LinearOperand::kForwardW)];
    KeepOperand("W", Recipe(LinearOperand::kForwardW), false, operand, kept.matrices[kW]);
  }
}

OperandData& LinearCall::InputGradient(const MatrixView& g,
                                       const MatrixView& w,
                                       const LinearKept& kept,
                                       std::span<float> dx) {
  OperandData& g_operand = Make(LinearOperand::kInputGradientG, g);
  const GemmOperand w_operand =
      recipe_.keeps == LinearKeeps::kQuantized
          ? AsOperand(Kept(kept, kW), w.shape, true)
          : numsim::AsOperand(Make(LinearOperand::kInputGradientW, w), true);
  Multiply(Product::kInputGradient, numsim::AsOperand(g_operand, false), w_operand, dx);
  return g_operand;
}

OperandData& LinearCall::RemakeX(const KeptMatrix& kept, MatrixShape shape) {
  const auto* matrix = std::get_if<QuantizedMatrix>(&kept.data);
  if (matrix == nullptr) return Make(LinearOperand::kWeightGradientX, KeptValues(kept, shape));
  std::vector<float>& values = workspace_.values;
  values.resize(shape.Elements());
  const bool quantized = recipe_.keeps == LinearKeeps::kQuantized;
  {
    // Widening what was kept in high precision is no step of its own: a device reads it as it is.
    const StepScope scope(observer_,
                          quantized ? LinearStep::kDequantizeX : LinearStep::kQuantizeXTransposed);
    Dequantize(*matrix, values);
    if (!quantized || Recipe(LinearOperand::kWeightGradientX).Unscaled()) {
      return MakeWithinStep(LinearOperand::kWeightGradientX, {values, shape});
    }
  }
  return Make(LinearOperand::kWeightGradientX, {values, shape});
}

void LinearCall::WeightGradient(const MatrixView& g,
                                const OperandData* input_gradient_g,
                                const LinearKept& kept,
                                std::span<float> dw) {
  const bool shared =
      SharesCodes(Recipe(LinearOperand::kInputGradientG), Recipe(LinearOperand::kWeightGradientG));
  const OperandData* g_operand = input_gradient_g;
  if (!shared) {
    g_operand = &Make(LinearOperand::kWeightGradientG, g);
  } else if (input_gradient_g == nullptr) {
    g_operand = &Make(LinearOperand::kInputGradientG, g);
  }
  const MatrixShape x_shape{kept.shape.tokens, kept.shape.in};
  const bool kept_serves = SharesCodes(KeptRecipe(), Recipe(LinearOperand::kWeightGradientX));
  const GemmOperand x = kept_serves ? AsOperand(Kept(kept, kX), x_shape, true)
                                    : numsim::AsOperand(RemakeX(Kept(kept, kX), x_shape), true);
  Multiply(Product::kWeightGradient, numsim::AsOperand(*g_operand, true), x, dw);
}

}  // namespace numsim
