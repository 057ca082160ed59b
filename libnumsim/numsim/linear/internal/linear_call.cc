#include "numsim/linear/internal/linear_call.h"

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"

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

// Returns the saved values, owned or the caller's. Requires values, not codes.
MatrixSpan<const float> SavedValues(const SavedMatrix& saved) {
  if (const auto* view = std::get_if<MatrixSpan<const float>>(&saved.data)) return *view;
  return std::get<Buffer<float>>(saved.data).View();
}

OperandView ViewOf(const SavedMatrix& saved) {
  if (const auto* matrix = std::get_if<QuantizedMatrix>(&saved.data)) return matrix;
  return SavedValues(saved);
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
  const auto& view = std::get<MatrixSpan<const float>>(data);
  if (stays) {
    saved.data = view;
    return;
  }
  auto* values = std::get_if<Buffer<float>>(&saved.data);
  if (values == nullptr) values = &saved.data.emplace<Buffer<float>>();
  values->EnsureAt(view.place, view.element);
  CopyMatrix<float>(view, values->Resize(view.rows, view.cols));
}

// Returns true if quantising a tensor again for its other operand gives the same codes. Not so with
// stochastic rounding, because each operand has its own random bits, or with delayed scales,
// because each operand may have its own history.
bool GivesTheSameCodes(const OperandRecipe& rows, const OperandRecipe& columns, Element element) {
  return !TakesValues(rows, element) && !rows.delayed &&
         rows.rounding.mode != RoundingMode::kStochastic && SharesCodes(rows, columns);
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

bool LinearCall::KeepsCodes(Element element) const {
  if (recipe_.saves == LinearSaves::kQuantized) return true;
  return TakesValues(HighPrecision(recipe_.high_precision), element) &&
         GivesTheSameCodes(recipe_[LinearOperand::kForwardX],
                           recipe_[LinearOperand::kWeightGradientX],
                           element) &&
         GivesTheSameCodes(
             recipe_[LinearOperand::kForwardW], recipe_[LinearOperand::kInputGradientW], element);
}

CodeOrder LinearCall::OrderFor(LinearOperand operand, bool rows, bool columns) const {
  bool contained = recipe_[GemmOf(operand)].container.has_value();
  if (operand == LinearOperand::kInputGradientG && columns) {  // read by the weight gradient
    contained = contained || recipe_[LinearGemm::kWeightGradient].container.has_value();
  }
  if (place_.IsHost() || contained || !columns) return CodeOrder::kInput;
  return rows ? CodeOrder::kBoth : CodeOrder::kTransposed;
}

OperandData& LinearCall::Make(LinearOperand operand, In<float> tensor, bool rows, bool columns) {
  if (TakesValues(recipe_[operand], tensor.element)) {
    OperandData& values = workspace_.operands[static_cast<size_t>(operand)];
    values = tensor;
    return values;
  }
  const StepScope scope(observer_, kPlaces[static_cast<size_t>(operand)].step);
  return MakeWithinStep(operand, tensor, OrderFor(operand, rows, columns));
}

OperandData& LinearCall::MakeWithinStep(LinearOperand operand, In<float> tensor, CodeOrder order) {
  const auto index = static_cast<size_t>(operand);
  const OperandPlace& place = kPlaces[index];
  const OperandRecipe& recipe = recipe_[operand];
  OperandData& result = workspace_.operands[index];
  MakeOperand(tensor,
              recipe,
              place.transposed,
              order,
              {random_.seed, 8 * random_.stream + index},
              recipe.delayed ? delayed_.Of(operand) : nullptr,
              result);
  if (observer_ != nullptr) {
    if (const auto* codes = std::get_if<QuantizedMatrix>(&result)) {
      observer_->Quantized(operand, tensor, *codes);
    }
  }
  return result;
}

MatrixSpan<const float> LinearCall::Rescaled(const OperandData& x,
                                             std::span<const float> channels) {
  Buffer<float>& values = workspace_.rescaled;
  if (const auto* codes = std::get_if<QuantizedMatrix>(&x)) {
    Dequantize(*codes, values.Resize(codes->shape.rows, codes->shape.cols));
  } else {
    const auto& view = std::get<MatrixSpan<const float>>(x);
    CopyMatrix<float>(view, values.Resize(view.rows, view.cols));
  }
  ScaleColumns(channels, values.Span());
  return values.View();
}

void LinearCall::Multiply(LinearGemm product,
                          const OperandView& a,
                          bool a_transposed,
                          const OperandView& b,
                          bool b_transposed,
                          MatrixSpan<float> out) {
  const GemmRecipe& recipe = recipe_[product];
  const StepScope scope(observer_, kProductSteps[static_cast<size_t>(product)]);
  Gemm(AsOperand(a, a_transposed, recipe.container, workspace_.contained[0]),
       AsOperand(b, b_transposed, recipe.container, workspace_.contained[1]),
       recipe.accumulation,
       out);
}

void LinearCall::Forward(
    In<float> x, In<float> w, MatrixSpan<float> y, bool x_stays, LinearSaved& saved) {
  saved.keeps_codes = KeepsCodes(x.element);
  const bool shares_x =
      SharesCodes(recipe_[LinearOperand::kForwardX], recipe_[LinearOperand::kWeightGradientX]);
  OperandData& x_operand = Make(LinearOperand::kForwardX, x, true, saved.keeps_codes && shares_x);
  OperandData& w_operand = Make(LinearOperand::kForwardW, w, true, saved.keeps_codes);
  if (saved.channels.empty()) {
    Multiply(LinearGemm::kForward, ViewOf(x_operand), false, ViewOf(w_operand), false, y);
  } else {
    const OperandView rescaled = Rescaled(x_operand, saved.channels);
    Multiply(LinearGemm::kForward, rescaled, false, ViewOf(w_operand), false, y);
  }
  SaveForBackward(x, x_stays, saved);
}

OperandRecipe LinearCall::SavedRecipe(const LinearSaved& saved) const {
  return saved.keeps_codes ? recipe_[LinearOperand::kForwardX]
                           : HighPrecision(recipe_.high_precision);
}

void LinearCall::SaveForBackward(In<float> x, bool x_stays, LinearSaved& saved) {
  saved.matrices.resize(saved.keeps_codes ? 2 : 1);
  const OperandRecipe recipe = SavedRecipe(saved);
  const bool made = recipe == recipe_[LinearOperand::kForwardX];
  if (made && !TakesValues(recipe, x.element)) {
    OperandData& operand = workspace_.operands[static_cast<size_t>(LinearOperand::kForwardX)];
    KeepOperand("X", recipe, false, operand, saved.matrices[kX]);
  } else {
    // A view of values that stay costs nothing.
    const bool free = x_stays && TakesValues(recipe, x.element);
    const StepScope scope(free ? nullptr : observer_, LinearOp::kSaveX);
    MakeOperand(x, recipe, false, CodeOrder::kInput, {}, nullptr, workspace_.saved_x);
    KeepOperand("X", recipe, x_stays, workspace_.saved_x, saved.matrices[kX]);
  }
  if (saved.keeps_codes) {
    OperandData& operand = workspace_.operands[static_cast<size_t>(LinearOperand::kForwardW)];
    KeepOperand("W", recipe_[LinearOperand::kForwardW], false, operand, saved.matrices[kW]);
  }
}

void LinearCall::Backward(In<float> g,
                          In<float> w,
                          const LinearSaved& saved,
                          MatrixSpan<float> dx,
                          MatrixSpan<float> dw) {
  const bool want_dx = dx.data != nullptr, want_dw = dw.data != nullptr;
  const bool shares_g = SharesCodes(recipe_[LinearOperand::kInputGradientG],
                                    recipe_[LinearOperand::kWeightGradientG]);
  const OperandData* g_operand = nullptr;
  if (want_dx || (want_dw && shares_g)) {
    g_operand = &Make(LinearOperand::kInputGradientG, g, want_dx, want_dw && shares_g);
  }
  if (want_dx) {
    const OperandView w_operand =
        saved.keeps_codes ? ViewOf(saved.matrices[kW])
                          : ViewOf(Make(LinearOperand::kInputGradientW, w, false, true));
    Multiply(LinearGemm::kInputGradient, ViewOf(*g_operand), false, w_operand, true, dx);
  }
  if (!want_dw) return;
  if (!shares_g) g_operand = &Make(LinearOperand::kWeightGradientG, g, false, true);
  const bool saved_serves =
      SharesCodes(SavedRecipe(saved), recipe_[LinearOperand::kWeightGradientX]);
  const OperandView x = saved_serves ? ViewOf(saved.matrices[kX]) : ViewOf(RemakeX(saved));
  Multiply(LinearGemm::kWeightGradient, ViewOf(*g_operand), true, x, true, dw);
}

OperandData& LinearCall::RemakeX(const LinearSaved& saved) {
  const SavedMatrix& x = saved.matrices[kX];
  const auto* matrix = std::get_if<QuantizedMatrix>(&x.data);
  constexpr LinearOperand kOperand = LinearOperand::kWeightGradientX;
  if (matrix == nullptr) return Make(kOperand, SavedValues(x), false, true);
  // On a device, values that the GEMM takes in bf16 are dequantised to that at once.
  const bool bf16 = !place_.IsHost() && TakesValues(recipe_[kOperand], Element::kBfloat16);
  const Element element = bf16 ? Element::kBfloat16 : Element::kFloat32;
  Buffer<float>& memory = workspace_.values;
  memory.EnsureAt(place_, element);
  const MatrixSpan<float> values = memory.Resize(matrix->shape.rows, matrix->shape.cols);
  {
    // Widening an X saved in high precision is not an operation of its own: a device reads it
    // directly.
    const StepScope scope(
        observer_, saved.keeps_codes ? LinearOp::kDequantizeX : LinearOp::kQuantizeXTransposed);
    Dequantize(*matrix, values);
    if (!saved.keeps_codes || recipe_[kOperand].Unscaled()) {
      return MakeWithinStep(kOperand, values, OrderFor(kOperand, false, true));
    }
  }
  return Make(kOperand, values, false, true);
}

}  // namespace numsim
