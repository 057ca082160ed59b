#include "numsim/nn/linear_call.h"

#include <utility>

#include "numsim/base/error.h"

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

GemmOperand AsOperand(const KeptMatrix& kept, MatrixShape shape, bool transposed) {
  if (const auto* matrix = std::get_if<QuantizedMatrix>(&kept.data)) {
    return numsim::AsOperand(*matrix, transposed);
  }
  return numsim::AsOperand(MatrixView{std::get<std::vector<float>>(kept.data), shape}, transposed);
}

KeptMatrix MakeKept(const char* name, const OperandRecipe& recipe, OperandData data) {
  KeptMatrix kept;
  kept.name = name;
  kept.format = recipe.format.name;
  kept.scaled = !recipe.Unscaled();
  if (auto* matrix = std::get_if<QuantizedMatrix>(&data)) {
    kept.data = std::move(*matrix);
  } else {
    const std::span<const float> values = std::get<MatrixView>(data).values;
    kept.data = std::vector<float>(values.begin(), values.end());
  }
  return kept;
}

}  // namespace

const OperandRecipe& LinearCall::Recipe(LinearOperand operand) const {
  const auto index = static_cast<size_t>(operand);
  const ProductRecipe& product = recipe_.products[index / 2];
  return index % 2 == 0 ? product.a : product.b;
}

OperandData LinearCall::Make(LinearOperand operand, const MatrixView& tensor) {
  if (TakesValues(Recipe(operand))) return tensor;
  const StepScope scope(observer_, kPlaces[static_cast<size_t>(operand)].step);
  return MakeWithinStep(operand, tensor);
}

OperandData LinearCall::MakeWithinStep(LinearOperand operand, const MatrixView& tensor) {
  const auto index = static_cast<size_t>(operand);
  const OperandPlace& place = kPlaces[index];
  const OperandRecipe& recipe = Recipe(operand);
  return MakeOperand(tensor,
                     recipe,
                     place.transposed,
                     {random_.seed, 8 * random_.stream + index},
                     recipe.delayed ? &delayed_[place.tensor] : nullptr);
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

std::vector<KeptMatrix> LinearCall::Keep(const MatrixView& x,
                                         OperandData x_operand,
                                         OperandData w_operand) {
  std::vector<KeptMatrix> kept;
  const OperandRecipe recipe = KeptRecipe();
  const bool made = recipe == Recipe(LinearOperand::kForwardX);
  if (made && !TakesValues(recipe)) {
    kept.push_back(MakeKept("X", recipe, std::move(x_operand)));
  } else {
    const StepScope scope(observer_, LinearStep::kKeepX);
    kept.push_back(MakeKept("X", recipe, MakeOperand(x, recipe, false, {}, nullptr)));
  }
  if (recipe_.keeps == LinearKeeps::kQuantized) {
    kept.push_back(MakeKept("W", Recipe(LinearOperand::kForwardW), std::move(w_operand)));
  }
  return kept;
}

OperandData LinearCall::InputGradient(const MatrixView& g,
                                      const MatrixView& w,
                                      const LinearKept& kept,
                                      std::span<float> dx) {
  OperandData g_operand = Make(LinearOperand::kInputGradientG, g);
  if (recipe_.keeps == LinearKeeps::kQuantized) {
    Multiply(Product::kInputGradient,
             numsim::AsOperand(g_operand, false),
             AsOperand(Kept(kept, kW), w.shape, true),
             dx);
  } else {
    const OperandData w_operand = Make(LinearOperand::kInputGradientW, w);
    Multiply(Product::kInputGradient,
             numsim::AsOperand(g_operand, false),
             numsim::AsOperand(w_operand, true),
             dx);
  }
  return g_operand;
}

OperandData LinearCall::RemakeX(const KeptMatrix& kept,
                                MatrixShape shape,
                                std::vector<float>& values) {
  const auto* matrix = std::get_if<QuantizedMatrix>(&kept.data);
  if (matrix == nullptr) {
    return Make(LinearOperand::kWeightGradientX, {std::get<std::vector<float>>(kept.data), shape});
  }
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
  OperandData own_g;
  if (!shared) {
    own_g = Make(LinearOperand::kWeightGradientG, g);
  } else if (input_gradient_g == nullptr) {
    own_g = Make(LinearOperand::kInputGradientG, g);
  }
  const OperandData& g_operand = shared && input_gradient_g != nullptr ? *input_gradient_g : own_g;

  const MatrixShape x_shape{kept.shape.tokens, kept.shape.in};
  std::vector<float> values;
  OperandData own_x;
  GemmOperand x;
  if (SharesCodes(KeptRecipe(), Recipe(LinearOperand::kWeightGradientX))) {
    x = AsOperand(Kept(kept, kX), x_shape, true);
  } else {
    own_x = RemakeX(Kept(kept, kX), x_shape, values);
    x = numsim::AsOperand(own_x, true);
  }
  Multiply(Product::kWeightGradient, numsim::AsOperand(g_operand, true), x, dw);
}

}  // namespace numsim
