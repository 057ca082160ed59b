#include "numsim/linear/linear.h"

#include <utility>

#include "numsim/base/keyword.h"
#include "numsim/base/require.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/linear/internal/linear_call.h"

namespace numsim {
namespace {

constexpr Keyword<LinearOp> kSteps[] = {
    {"quantize X", LinearOp::kQuantizeX},
    {"quantize W", LinearOp::kQuantizeW},
    {"forward product", LinearOp::kForwardProduct},
    {"quantize G", LinearOp::kQuantizeG},
    {"quantize W^T", LinearOp::kQuantizeWTransposed},
    {"input gradient product", LinearOp::kInputGradientProduct},
    {"quantize G^T", LinearOp::kQuantizeGTransposed},
    {"quantize X^T", LinearOp::kQuantizeXTransposed},
    {"weight gradient product", LinearOp::kWeightGradientProduct},
    {"dequantize X", LinearOp::kDequantizeX},
    {"keep X", LinearOp::kKeepX},
};

void CheckSize(const char* tensor, size_t size, size_t rows, size_t cols) {
  RequireSize(size, MatrixShape{rows, cols}, "Linear", tensor);
}

// Checks a property of a recipe.
void RequireOfRecipe(bool holds, const LinearRecipe& recipe, const char* expected) {
  NUMSIM_REQUIRE(holds, "Linear: recipe '{}': expected {}", recipe.kind, expected);
}

void CheckRecipe(const LinearRecipe& recipe) {
  const GemmRecipe& forward = recipe[LinearGemm::kForward];
  const GemmRecipe& input_gradient = recipe[LinearGemm::kInputGradient];
  const GemmRecipe& weight_gradient = recipe[LinearGemm::kWeightGradient];
  for (const LinearGemm product : kProducts) {
    for (const OperandRecipe* operand : {&recipe[product].a, &recipe[product].b}) {
      RequireOfRecipe(operand->Unscaled() || operand->delayed == recipe.delayed.has_value(),
                      recipe,
                      "delayed scaling of all quantised operands or of none");
      RequireOfRecipe(operand->layout.granularity != Granularity::kColumn,
                      recipe,
                      "a layout other than column");
    }
  }
  if (recipe.saves == LinearSaves::kQuantized) {
    RequireOfRecipe(SharesCodes(forward.b, input_gradient.b), recipe, "equal operands of W");
  }
  if (recipe.delayed.has_value()) {
    RequireOfRecipe(
        recipe.saves != LinearSaves::kQuantized || SharesCodes(forward.a, weight_gradient.b),
        recipe,
        "equal operands of X");
    RequireOfRecipe(
        SharesCodes(input_gradient.a, weight_gradient.a), recipe, "equal operands of G");
  }
}

}  // namespace

std::string_view ToString(LinearOp step) { return KeywordToString(kSteps, step); }

size_t SavedMatrix::Bytes() const {
  if (const auto* values = std::get_if<std::vector<float>>(&data)) {
    return values->size() * sizeof(float);
  }
  if (const auto* view = std::get_if<MatrixView>(&data)) return view->values.size_bytes();
  const auto& matrix = std::get<QuantizedMatrix>(data);
  const size_t scales = scaled ? matrix.scales.size() * sizeof(float) : 0;
  return matrix.codes8.size() + matrix.codes16.size() * sizeof(uint16_t) + scales;
}

size_t LinearSaved::Bytes() const {
  size_t sum = 0;
  for (const SavedMatrix& matrix : matrices) sum += matrix.Bytes();
  return sum;
}

Linear::Linear(LinearRecipe recipe) : recipe_(std::move(recipe)) {
  CheckRecipe(recipe_);
  delayed_ = DelayedScales(recipe_);
}

void Linear::Forward(std::span<const float> x,
                     std::span<const float> w,
                     LinearShape shape,
                     std::span<float> y,
                     LinearSaved& saved,
                     RandomStream random,
                     LinearObserver* observer,
                     bool x_stays,
                     std::span<const float> channels) {
  CheckSize("x", x.size(), shape.tokens, shape.in);
  CheckSize("w", w.size(), shape.out, shape.in);
  CheckSize("y", y.size(), shape.tokens, shape.out);
  const MatrixView x_view{x, {shape.tokens, shape.in}};
  LinearCall call(recipe_, delayed_, workspace_, random, observer);
  NUMSIM_REQUIRE(channels.empty() || channels.size() == shape.in,
                 "Linear: 'channels' has {} elements, expected {}",
                 channels.size(),
                 shape.in);
  OperandData& x_operand = call.Make(LinearOperand::kForwardX, x_view);
  OperandData& w_operand = call.Make(LinearOperand::kForwardW, {w, {shape.out, shape.in}});
  const OperandData rescaled =
      channels.empty() ? OperandData() : OperandData(call.Rescaled(x_operand, shape, channels));
  call.Multiply(LinearGemm::kForward,
                AsOperand(channels.empty() ? x_operand : rescaled, false),
                AsOperand(w_operand, false),
                y);
  saved.shape = shape;
  saved.channels.assign(channels.begin(), channels.end());
  call.SaveForBackward(x_view, x_stays, saved);
  delayed_.UpdateForward();
}

void Linear::Backward(std::span<const float> g,
                      std::span<const float> w,
                      const LinearSaved& saved,
                      std::span<float> dx,
                      std::span<float> dw,
                      RandomStream random,
                      LinearObserver* observer) {
  const LinearShape& shape = saved.shape;
  CheckSize("g", g.size(), shape.tokens, shape.out);
  const size_t saved_count = recipe_.saves == LinearSaves::kQuantized ? 2 : 1;
  NUMSIM_REQUIRE(saved.matrices.size() == saved_count,
                 "Linear::Backward: 'saved' has {} matrices, expected {}, those of a Forward",
                 saved.matrices.size(),
                 saved_count);
  if (!dx.empty()) {
    CheckSize("dx", dx.size(), shape.tokens, shape.in);
    if (recipe_.saves == LinearSaves::kInputs) CheckSize("w", w.size(), shape.out, shape.in);
  }
  if (!dw.empty()) CheckSize("dw", dw.size(), shape.out, shape.in);
  const MatrixView g_view{g, {shape.tokens, shape.out}};
  LinearCall call(recipe_, delayed_, workspace_, random, observer);
  const OperandData* g_operand = nullptr;
  if (!dx.empty()) {
    g_operand = &call.InputGradient(g_view, {w, {shape.out, shape.in}}, saved, dx);
  }
  if (!dw.empty()) {
    call.WeightGradient(g_view, g_operand, saved, dw);
    if (!saved.channels.empty()) ScaleColumns(saved.channels, dw);
  }
  delayed_.UpdateBackward();
}

std::vector<float> Linear::SaveState() const { return delayed_.Save(); }

void Linear::RestoreState(std::span<const float> state) { delayed_.Restore(state, recipe_); }

}  // namespace numsim
