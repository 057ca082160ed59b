#include "numsim/linear/internal/linear_call.h"

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/linear/internal/linear_saved.h"

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

LinearTensor TensorOf(const SavedMatrix& saved) {
  if (saved.kind == SavedKind::kCodes) return {&saved.codes, {}, saved.scaled};
  return {nullptr, saved.Values()};
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

LinearTensor LinearCall::Make(LinearOperand operand,
                              ConstFloatSpan tensor,
                              bool rows,
                              bool columns,
                              QuantizedMatrix* memory) {
  if (recipe_[operand].hadamard.size == 0 && TakesValues(recipe_[operand], tensor.element)) {
    return {nullptr, tensor};
  }
  const StepScope scope(observer_, kPlaces[static_cast<size_t>(operand)].step);
  return MakeWithinStep(operand, tensor, OrderFor(recipe_, place_, operand, rows, columns), memory);
}

LinearTensor LinearCall::MakeWithinStep(LinearOperand operand,
                                        ConstFloatSpan tensor,
                                        CodeOrder order,
                                        QuantizedMatrix* memory) {
  const auto index = static_cast<size_t>(operand);
  const OperandRecipe& recipe = recipe_[operand];
  if (recipe.hadamard.size != 0) {
    const MatrixSpan<float> transformed =
        workspace_.transformed[index % 2].Renew(tensor.rows, tensor.cols);
    Transform(tensor,
              recipe.hadamard,
              kPlaces[index].transposed,
              random_,
              recipe_.high_precision.spec,
              transformed);
    tensor = transformed;
  }
  const LinearTensor made = MakeOperand(tensor,
                                        recipe,
                                        kPlaces[index].transposed,
                                        order,
                                        RandomOf(operand),
                                        recipe.delayed ? delayed_.Of(operand) : nullptr,
                                        memory != nullptr ? *memory : workspace_.operands[index]);
  if (observer_ != nullptr && made.codes != nullptr) {
    observer_->Quantized(operand, tensor, *made.codes);
  }
  return made;
}

MatrixSpan<const float> LinearCall::Rescaled(const LinearTensor& x,
                                             std::span<const float> channels) {
  const MatrixShape shape = x.codes != nullptr ? x.codes->shape : x.values.Shape();
  const MatrixSpan<float> values = workspace_.rescaled.Renew(shape.rows, shape.cols);
  if (x.codes != nullptr) {
    Dequantize(*x.codes, values);
  } else {
    CopyMatrix<float>(x.values.Float32(), values);
  }
  ScaleColumns(channels, values.Span());
  return values;
}

void LinearCall::Multiply(LinearGemm product,
                          const LinearTensor& a,
                          bool a_transposed,
                          const LinearTensor& b,
                          bool b_transposed,
                          FloatSpan out) {
  const GemmRecipe& recipe = recipe_[product];
  const StepScope scope(observer_, kProductSteps[static_cast<size_t>(product)]);
  Gemm(AsOperand(a, a_transposed, recipe.container, workspace_.contained[0]),
       AsOperand(b, b_transposed, recipe.container, workspace_.contained[1]),
       recipe.accumulation,
       out);
}

void LinearCall::Forward(ConstFloatSpan x, ConstFloatSpan w, FloatSpan y, LinearSaved& saved) {
  const OperandRecipe recipe = SavedRecipe(recipe_, saved.keeps_codes);
  SavedMatrix& saved_x = saved.matrices[kX];
  // An operand that is saved is made where it is saved.
  const bool saves_forward_x =
      saved_x.kind == SavedKind::kCodes && recipe == recipe_[LinearOperand::kForwardX];
  const bool shares_x =
      SharesCodes(recipe_[LinearOperand::kForwardX], recipe_[LinearOperand::kWeightGradientX]);
  const LinearTensor x_operand = Make(LinearOperand::kForwardX,
                                      x,
                                      true,
                                      saved.keeps_codes && shares_x,
                                      saves_forward_x ? &saved_x.codes : nullptr);
  const LinearTensor w_operand = Make(LinearOperand::kForwardW,
                                      w,
                                      true,
                                      saved.keeps_codes,
                                      saved.keeps_codes ? &saved.matrices[kW].codes : nullptr);
  if (saved.keeps_codes && saved.matrices[kW].kind == SavedKind::kValues) {
    CopyFloats(w, saved.matrices[kW].values.View());
  }
  if (saved.channels.empty()) {
    Multiply(LinearGemm::kForward, x_operand, false, w_operand, false, y);
  } else {
    const LinearTensor rescaled{nullptr, Rescaled(x_operand, saved.channels)};
    Multiply(LinearGemm::kForward, rescaled, false, w_operand, false, y);
  }
  if (!saves_forward_x && saved_x.kind != SavedKind::kView) SaveX(x, saved_x);
}

void LinearCall::SaveX(ConstFloatSpan x, SavedMatrix& saved) {
  const StepScope scope(observer_, LinearOp::kSaveX);
  if (saved.kind == SavedKind::kValues) return CopyFloats(x, saved.values.View());
  const OperandRecipe recipe = HighPrecision(recipe_.high_precision);
  MakeOperand(x, recipe, false, CodeOrder::kInput, {}, nullptr, saved.codes);
}

void LinearCall::Backward(
    ConstFloatSpan g, ConstFloatSpan w, const LinearSaved& saved, FloatSpan dx, FloatSpan dw) {
  const bool want_dx = dx.data != nullptr, want_dw = dw.data != nullptr;
  const bool shares_g = SharesCodes(recipe_[LinearOperand::kInputGradientG],
                                    recipe_[LinearOperand::kWeightGradientG]);
  LinearTensor g_operand;
  if (want_dx || (want_dw && shares_g)) {
    g_operand = Make(LinearOperand::kInputGradientG, g, want_dx, want_dw && shares_g);
  }
  if (want_dx) {
    const LinearTensor w_operand =
        saved.keeps_codes ? TensorOf(saved.matrices[kW]) : MakeBackwardW(w);
    Multiply(LinearGemm::kInputGradient, g_operand, false, w_operand, true, dx);
  }
  if (!want_dw) return;
  if (!shares_g) g_operand = Make(LinearOperand::kWeightGradientG, g, false, true);
  const bool saved_serves =
      !recipe_.x_from_codes && SharesCodes(SavedRecipe(recipe_, saved.keeps_codes),
                                           recipe_[LinearOperand::kWeightGradientX]);
  const LinearTensor x = saved_serves ? TensorOf(saved.matrices[kX]) : RemakeX(saved);
  Multiply(LinearGemm::kWeightGradient, g_operand, true, x, true, dw);
}

LinearTensor LinearCall::MakeBackwardW(ConstFloatSpan w) {
  constexpr LinearOperand kOperand = LinearOperand::kInputGradientW;
  if (!recipe_.w_from_codes) return Make(kOperand, w, false, true);
  const StepScope scope(observer_, LinearOp::kQuantizeWTransposed);
  // The codes of Forward again: those of W have no random bits, or the same ones.
  QuantizedMatrix& codes = workspace_.operands[static_cast<size_t>(LinearOperand::kForwardW)];
  MakeOperand(w,
              recipe_[LinearOperand::kForwardW],
              false,
              CodeOrder::kInput,
              RandomOf(LinearOperand::kForwardW),
              nullptr,
              codes);
  const MatrixSpan<float> values = workspace_.dequantized_w.Renew(w.rows, w.cols);
  Dequantize(codes, values);
  return MakeWithinStep(kOperand, values, CodeOrder::kInput);
}

LinearTensor LinearCall::RemakeX(const LinearSaved& saved) {
  const LinearTensor x = TensorOf(saved.matrices[kX]);
  constexpr LinearOperand kOperand = LinearOperand::kWeightGradientX;
  if (x.codes == nullptr) return Make(kOperand, x.values, false, true);
  // On a device, values that the GEMM takes in bf16 are dequantised to that at once.
  const bool bf16 = !place_.IsHost() && TakesValues(recipe_[kOperand], Element::kBfloat16);
  FloatBuffer& memory = workspace_.values;
  memory.EnsureAt(place_, bf16 ? Element::kBfloat16 : Element::kFloat32);
  const FloatSpan values = memory.Renew(x.codes->shape.rows, x.codes->shape.cols);
  {
    // Widening an X saved in high precision is not an operation of its own: a device reads it
    // directly.
    const bool codes = saved.keeps_codes || recipe_.x_from_codes;
    const StepScope scope(observer_,
                          codes ? LinearOp::kDequantizeX : LinearOp::kQuantizeXTransposed);
    Dequantize(*x.codes, values);
    if (!codes || recipe_[kOperand].Unscaled()) {
      return MakeWithinStep(kOperand, values, OrderFor(recipe_, place_, kOperand, false, true));
    }
  }
  return Make(kOperand, values, false, true);
}

}  // namespace numsim
