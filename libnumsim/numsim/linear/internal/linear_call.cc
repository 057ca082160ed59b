#include "numsim/linear/internal/linear_call.h"

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/gemm/gemm_quantized.h"

namespace numsim {
namespace {

enum SavedTensor : size_t { kX, kW };

struct OperandPlace {
  LinearOp step;
  bool transposed;  // the operand is the tensor's transpose
};

constexpr OperandPlace kPlaces[] = {
    {LinearOp::kQuantizeX, false},
    {LinearOp::kQuantizeW, false},
    {LinearOp::kQuantizeG, false},
    {LinearOp::kQuantizeWTransposed, true},
    {LinearOp::kQuantizeGTransposed, true},
    {LinearOp::kQuantizeXTransposed, true},
};

constexpr LinearOp kProductSteps[] = {
    LinearOp::kForwardProduct, LinearOp::kInputGradientProduct, LinearOp::kWeightGradientProduct};

const SavedMatrix& Kept(const LinearSaved& saved, size_t tensor) { return saved.matrices[tensor]; }

// Returns the saved values, owned or the caller's. Requires values, not codes.
MatrixView SavedValues(const SavedMatrix& saved, MatrixShape shape) {
  if (const auto* view = std::get_if<MatrixView>(&saved.data)) return *view;
  return {std::get<std::vector<float>>(saved.data), shape};
}

GemmOperand AsOperand(const SavedMatrix& saved, MatrixShape shape, bool transposed) {
  if (const auto* matrix = std::get_if<QuantizedMatrix>(&saved.data)) {
    return numsim::AsOperand(*matrix, transposed);
  }
  return numsim::AsOperand(OperandData(SavedValues(saved, shape)), transposed);
}

// Moves codes from `data` to `saved`, exchanging their memory. Copies values, unless they stay
// unchanged: then only the view is saved.
void KeepOperand(const char* name,
                 const OperandRecipe& recipe,
                 bool stays,
                 OperandData& data,
                 SavedMatrix& saved) {
  saved.name = name;
  saved.format = recipe.format.name;
  saved.scaled = !recipe.Unscaled();
  if (auto* matrix = std::get_if<QuantizedMatrix>(&data)) {
    if (!std::holds_alternative<QuantizedMatrix>(saved.data)) saved.data.emplace<QuantizedMatrix>();
    std::swap(*matrix, std::get<QuantizedMatrix>(saved.data));
    return;
  }
  const MatrixView& view = std::get<MatrixView>(data);
  if (stays) {
    saved.data = view;
    return;
  }
  if (!std::holds_alternative<std::vector<float>>(saved.data)) {
    saved.data.emplace<std::vector<float>>();
  }
  std::get<std::vector<float>>(saved.data).assign(view.values.begin(), view.values.end());
}

}  // namespace

void ScaleColumns(std::span<const float> channels, std::span<float> matrix) {
  const size_t columns = channels.size();
  if (columns == 0) return;
  ParallelFor(matrix.size() / columns, 64, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      float* values = matrix.data() + row * columns;
      for (size_t j = 0; j < columns; ++j) values[j] *= channels[j];
    }
  });
}

OperandData& LinearCall::Make(LinearOperand operand, const MatrixView& tensor) {
  if (TakesValues(recipe_[operand])) {
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
  const OperandRecipe& recipe = recipe_[operand];
  OperandData& result = workspace_.operands[index];
  MakeOperand(tensor,
              recipe,
              place.transposed,
              {random_.seed, 8 * random_.stream + index},
              recipe.delayed ? delayed_.Of(operand) : nullptr,
              result);
  if (observer_ != nullptr) {
    if (const auto* codes = std::get_if<QuantizedMatrix>(&result)) {
      observer_->Quantised(operand, tensor, *codes);
    }
  }
  return result;
}

MatrixView LinearCall::Rescaled(const OperandData& x,
                                LinearShape shape,
                                std::span<const float> channels) {
  std::vector<float>& values = workspace_.rescaled;
  values.resize(shape.tokens * shape.in);
  if (const auto* codes = std::get_if<QuantizedMatrix>(&x)) {
    Dequantize(*codes, values);
  } else {
    std::ranges::copy(std::get<MatrixView>(x).values, values.begin());
  }
  ScaleColumns(channels, values);
  return {values, {shape.tokens, shape.in}};
}

void LinearCall::Multiply(LinearGemm product,
                          const GemmOperand& a,
                          const GemmOperand& b,
                          std::span<float> out) {
  const StepScope scope(observer_, kProductSteps[static_cast<size_t>(product)]);
  Gemm(a, b, recipe_[product].accumulation, out);
}

OperandRecipe LinearCall::SavedRecipe() const {
  return recipe_.saves == LinearSaves::kQuantized ? recipe_[LinearOperand::kForwardX]
                                                  : HighPrecision(recipe_.high_precision);
}

void LinearCall::SaveForBackward(const MatrixView& x, bool x_stays, LinearSaved& saved) {
  const bool keeps_w = recipe_.saves == LinearSaves::kQuantized;
  saved.matrices.resize(keeps_w ? 2 : 1);
  const OperandRecipe recipe = SavedRecipe();
  const bool made = recipe == recipe_[LinearOperand::kForwardX];
  if (made && !TakesValues(recipe)) {
    OperandData& operand = workspace_.operands[static_cast<size_t>(LinearOperand::kForwardX)];
    KeepOperand("X", recipe, false, operand, saved.matrices[kX]);
  } else {
    const StepScope scope(observer_, LinearOp::kKeepX);
    MakeOperand(x, recipe, false, {}, nullptr, workspace_.saved_x);
    KeepOperand("X", recipe, x_stays, workspace_.saved_x, saved.matrices[kX]);
  }
  if (keeps_w) {
    OperandData& operand = workspace_.operands[static_cast<size_t>(LinearOperand::kForwardW)];
    KeepOperand("W", recipe_[LinearOperand::kForwardW], false, operand, saved.matrices[kW]);
  }
}

OperandData& LinearCall::InputGradient(const MatrixView& g,
                                       const MatrixView& w,
                                       const LinearSaved& saved,
                                       std::span<float> dx) {
  OperandData& g_operand = Make(LinearOperand::kInputGradientG, g);
  const GemmOperand w_operand =
      recipe_.saves == LinearSaves::kQuantized
          ? AsOperand(Kept(saved, kW), w.shape, true)
          : numsim::AsOperand(Make(LinearOperand::kInputGradientW, w), true);
  Multiply(LinearGemm::kInputGradient, numsim::AsOperand(g_operand, false), w_operand, dx);
  return g_operand;
}

OperandData& LinearCall::RemakeX(const SavedMatrix& saved, MatrixShape shape) {
  const auto* matrix = std::get_if<QuantizedMatrix>(&saved.data);
  if (matrix == nullptr) return Make(LinearOperand::kWeightGradientX, SavedValues(saved, shape));
  std::vector<float>& values = workspace_.values;
  values.resize(shape.Elements());
  const bool quantized = recipe_.saves == LinearSaves::kQuantized;
  {
    // Widening an X saved in high precision is not an operation of its own: a device reads it
    // directly.
    const StepScope scope(observer_,
                          quantized ? LinearOp::kDequantizeX : LinearOp::kQuantizeXTransposed);
    Dequantize(*matrix, values);
    if (!quantized || recipe_[LinearOperand::kWeightGradientX].Unscaled()) {
      return MakeWithinStep(LinearOperand::kWeightGradientX, {values, shape});
    }
  }
  return Make(LinearOperand::kWeightGradientX, {values, shape});
}

void LinearCall::WeightGradient(const MatrixView& g,
                                const OperandData* input_gradient_g,
                                const LinearSaved& saved,
                                std::span<float> dw) {
  const bool shared = SharesCodes(recipe_[LinearOperand::kInputGradientG],
                                  recipe_[LinearOperand::kWeightGradientG]);
  const OperandData* g_operand = input_gradient_g;
  if (!shared) {
    g_operand = &Make(LinearOperand::kWeightGradientG, g);
  } else if (input_gradient_g == nullptr) {
    g_operand = &Make(LinearOperand::kInputGradientG, g);
  }
  const MatrixShape x_shape{saved.shape.tokens, saved.shape.in};
  const bool saved_serves = SharesCodes(SavedRecipe(), recipe_[LinearOperand::kWeightGradientX]);
  const GemmOperand x = saved_serves ? AsOperand(Kept(saved, kX), x_shape, true)
                                     : numsim::AsOperand(RemakeX(Kept(saved, kX), x_shape), true);
  Multiply(LinearGemm::kWeightGradient, numsim::AsOperand(*g_operand, true), x, dw);
}

}  // namespace numsim
