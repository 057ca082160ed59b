#include "numsim/linear/linear.h"

#include <utility>

#include "numsim/base/keyword.h"
#include "numsim/base/require.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/linear/internal/linear_call.h"
#include "numsim/linear/internal/linear_kinds.h"

namespace numsim {
namespace {

constexpr Keyword<LinearOp> kOps[] = {
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
    {"keep X", LinearOp::kSaveX},
};

void CheckMatrix(const char* tensor, In<float> matrix, size_t rows, size_t cols, Place place) {
  NUMSIM_REQUIRE(matrix.rows == rows && matrix.cols == cols && matrix.Contiguous(),
                 "Linear: '{}' is {} x {} with stride {}, expected {} x {}, contiguous",
                 tensor,
                 matrix.rows,
                 matrix.cols,
                 matrix.stride,
                 rows,
                 cols);
  NUMSIM_REQUIRE(matrix.place == place && (matrix.data != nullptr || rows * cols == 0),
                 "Linear: '{}' is {}, the layer is on the {}",
                 tensor,
                 matrix.data == nullptr ? "nowhere" : ToString(matrix.place),
                 ToString(place));
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
  for (const GemmRecipe& made : recipe.products) {
    if (!made.container.has_value()) continue;
    for (const OperandRecipe* operand : {&made.a, &made.b}) {
      RequireOfRecipe(FitsContainer(*operand, made.container->spec),
                      recipe,
                      "operands that fit their container");
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

// Throws Error unless this device computes the GEMM under its mode.
void CheckMode(const LinearRecipe& recipe, LinearGemm product) {
  if constexpr (NUMSIM_HAVE_CUDA) {
    const GemmRecipe& made = recipe[product];
    const Format& a = made.container.value_or(made.a.format);
    const Format& b = made.container.value_or(made.b.format);
    if (IsOrderedMode(made.accumulation)) return;
    if (MultipliesOnDevice(a.spec, b.spec, made.accumulation)) return;
    throw Error::Format("kind '{}', {} product: {} does not multiply {} by {} under mode {}",
                        recipe.kind,
                        ToString(product),
                        Device().name,
                        a.name,
                        b.name,
                        ToString(made.accumulation));
  }
}

}  // namespace

std::string_view ToString(LinearOp op) { return KeywordToString(kOps, op); }

size_t SavedMatrix::Bytes() const {
  if (const auto* values = std::get_if<Buffer<float>>(&data)) return values->View().Bytes();
  if (const auto* view = std::get_if<MatrixSpan<const float>>(&data)) return view->Bytes();
  const auto& matrix = std::get<QuantizedMatrix>(data);
  const size_t codes = matrix.shape.Elements() * static_cast<size_t>(matrix.format.StorageBytes());
  return codes + (scaled ? matrix.scales.View().Bytes() : 0);
}

size_t LinearSaved::Bytes() const {
  size_t sum = 0;
  for (const SavedMatrix& matrix : matrices) sum += matrix.Bytes();
  return sum;
}

Linear::Linear(LinearRecipe recipe, Place place) : recipe_(std::move(recipe)), place_(place) {
  CheckRecipe(recipe_);
  if (!place.IsHost()) {
    CheckOnDevice(recipe_);
    for (const LinearGemm product : kProducts) CheckMode(recipe_, product);
  }
  delayed_ = DelayedScales(recipe_, place);
}

void Linear::CheckShape(LinearShape shape) const {
  if (place_.IsHost()) return;
  if constexpr (NUMSIM_HAVE_CUDA) {
    const size_t sizes[3][3] = {{shape.tokens, shape.out, shape.in},
                                {shape.tokens, shape.in, shape.out},
                                {shape.out, shape.in, shape.tokens}};  // rows of a and b, inner
    for (const LinearGemm product : kProducts) {
      const GemmRecipe& made = recipe_[product];
      // Computed one product after another, or exactly: at any shape.
      if (IsOrderedMode(made.accumulation) || made.accumulation.kind == AccumulationKind::kExact) {
        continue;
      }
      const auto& [rows_a, rows_b, inner] = sizes[static_cast<int>(product)];
      DeviceGemmOperand a, b;
      a.format = made.container.value_or(made.a.format).spec;
      b.format = made.container.value_or(made.b.format).spec;
      a.rows = rows_a;
      b.rows = rows_b;
      a.inner = b.inner = inner;
      // The kernel for blocks adds up each of them anew, which makes both modes of FP8 one.
      const bool blocks = !made.container.has_value() && made.a.layout.block != 0;
      const AccumulationMode mode =
          blocks ? ParseAccumulationMode("hopper-fp8-fast") : made.accumulation;
      // Of 16-bit operands: bf16 tensors and containers are transposed, other codes are not.
      const bool straight = ServesShape(a, b, mode, place_);
      a.transposed = product == LinearGemm::kWeightGradient;
      b.transposed = product != LinearGemm::kForward;
      if (straight && ServesShape(a, b, mode, place_)) continue;
      throw Error::Format(
          "kind '{}', {} product of {} x {} results of {} products: {} has no algorithm under mode {} "
          "that adds them in order",
          recipe_.kind,
          ToString(product),
          rows_a,
          rows_b,
          inner,
          DeviceGemmLibrary(),
          ToString(made.accumulation));
    }
  }
}

void Linear::Forward(In<float> x,
                     In<float> w,
                     MatrixSpan<float> y,
                     LinearSaved& saved,
                     RandomStream random,
                     LinearObserver* observer,
                     bool x_stays,
                     std::span<const float> channels) {
  const LinearShape shape{x.rows, x.cols, w.rows};
  CheckMatrix("x", x, shape.tokens, shape.in, place_);
  CheckMatrix("w", w, shape.out, shape.in, place_);
  CheckMatrix("y", y, shape.tokens, shape.out, place_);
  NUMSIM_REQUIRE(channels.empty() || channels.size() == shape.in,
                 "Linear: 'channels' has {} elements, expected {}",
                 channels.size(),
                 shape.in);
  NUMSIM_REQUIRE(channels.empty() || !recipe_[LinearGemm::kForward].container.has_value(),
                 "Linear: {} channels of a layer whose operands enter in a container",
                 channels.size());
  if (!channels.empty()) RequireHost("a linear layer with channels", {place_});
  LinearCall call(recipe_, place_, delayed_, workspace_, random, observer);
  saved.shape = shape;
  saved.channels.assign(channels.begin(), channels.end());
  call.Forward(x, w, y, x_stays, saved);
  delayed_.UpdateForward();
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
  RequireSize(x.size(), MatrixShape{shape.tokens, shape.in}, "Linear", "x");
  RequireSize(w.size(), MatrixShape{shape.out, shape.in}, "Linear", "w");
  RequireSize(y.size(), MatrixShape{shape.tokens, shape.out}, "Linear", "y");
  Forward(MatrixSpan<const float>(x.data(), shape.tokens, shape.in),
          {w.data(), shape.out, shape.in},
          {y.data(), shape.tokens, shape.out},
          saved,
          random,
          observer,
          x_stays,
          channels);
}

void Linear::Backward(In<float> g,
                      In<float> w,
                      const LinearSaved& saved,
                      MatrixSpan<float> dx,
                      MatrixSpan<float> dw,
                      RandomStream random,
                      LinearObserver* observer) {
  const LinearShape& shape = saved.shape;
  CheckMatrix("g", g, shape.tokens, shape.out, place_);
  const size_t saved_count = saved.keeps_codes ? 2 : 1;
  NUMSIM_REQUIRE(saved.matrices.size() == saved_count,
                 "Linear::Backward: 'saved' has {} matrices, expected {}, those of a Forward",
                 saved.matrices.size(),
                 saved_count);
  if (dx.data != nullptr) {
    CheckMatrix("dx", dx, shape.tokens, shape.in, place_);
    if (!saved.keeps_codes) CheckMatrix("w", w, shape.out, shape.in, place_);
  }
  if (dw.data != nullptr) CheckMatrix("dw", dw, shape.out, shape.in, place_);
  LinearCall call(recipe_, place_, delayed_, workspace_, random, observer);
  call.Backward(g, w, saved, dx, dw);
  if (dw.data != nullptr && !saved.channels.empty()) ScaleColumns(saved.channels, dw.Span());
  delayed_.UpdateBackward();
}

void Linear::Backward(std::span<const float> g,
                      std::span<const float> w,
                      const LinearSaved& saved,
                      std::span<float> dx,
                      std::span<float> dw,
                      RandomStream random,
                      LinearObserver* observer) {
  const LinearShape& shape = saved.shape;
  RequireSize(g.size(), MatrixShape{shape.tokens, shape.out}, "Linear", "g");
  const auto result = [](const char* name, std::span<float> values, MatrixShape expected) {
    if (values.empty()) return MatrixSpan<float>();
    RequireSize(values.size(), expected, "Linear", name);
    return MatrixSpan<float>(values.data(), expected);
  };
  const MatrixSpan<float> to_x = result("dx", dx, {shape.tokens, shape.in});
  const MatrixSpan<float> to_w = result("dw", dw, {shape.out, shape.in});
  if (to_x.data != nullptr && !saved.keeps_codes) {
    RequireSize(w.size(), MatrixShape{shape.out, shape.in}, "Linear", "w");
  }
  Backward(MatrixSpan<const float>(g.data(), shape.tokens, shape.out),
           {w.data(), shape.out, shape.in},
           saved,
           to_x,
           to_w,
           random,
           observer);
}

std::vector<float> Linear::SaveState() const { return delayed_.Save(); }

void Linear::RestoreState(std::span<const float> state) { delayed_.Restore(state, recipe_); }

}  // namespace numsim
