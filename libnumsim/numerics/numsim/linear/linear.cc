#include "numsim/linear/linear.h"

#include <utility>

#include "numsim/backend/device.h"
#include "numsim/base/keyword.h"
#include "numsim/base/require.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/linear/internal/linear_call.h"
#include "numsim/linear/internal/linear_kinds.h"
#include "numsim/linear/internal/linear_saved.h"
#include "numsim/linear/internal/linear_workspace.h"

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

// Checks a tensor, which may be all its elements as one row.
void CheckMatrix(const char* tensor, ConstFloatSpan matrix, size_t rows, size_t cols, Place place) {
  const bool row = matrix.rows == 1 && rows != 1;
  if (row) RequireSize(matrix.cols, MatrixShape{rows, cols}, "Linear", tensor);
  NUMSIM_REQUIRE(matrix.Contiguous() && (row || (matrix.rows == rows && matrix.cols == cols)),
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
    RequireOfRecipe(
        made.a.hadamard == made.b.hadamard, recipe, "equal transforms of both operands of a GEMM");
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
  if (kind != SavedKind::kCodes) return Values().Bytes();
  const size_t bytes = codes.shape.Elements() * static_cast<size_t>(codes.format.StorageBytes());
  return bytes + (scaled ? codes.scales.View().Bytes() : 0);
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

void Linear::CheckTransforms(LinearShape shape) const {
  const size_t inner[] = {shape.in, shape.out, shape.tokens};
  for (const LinearGemm product : kProducts) {
    const size_t size = recipe_[product].a.hadamard.size;
    const size_t n = inner[static_cast<int>(product)];
    if (size != 0 && n % size != 0) {
      throw Error::Format(
          "kind '{}': the inner dimension of the {} GEMM is {}, which a hadamard_size of {} does not "
          "divide",
          recipe_.kind,
          ToString(product),
          n,
          size);
    }
  }
}

void Linear::CheckShape(LinearShape shape) const {
  CheckTransforms(shape);
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
      GemmOperand a, b;
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

std::vector<size_t> Linear::SavedBytes(ConstFloatSpan x, ConstFloatSpan w, bool x_stays) const {
  const SavedPlans plans = PlanSaved(recipe_, x, w, x_stays);
  std::vector<size_t> bytes;
  for (const SavedPlan& plan : plans.All()) bytes.push_back(plan.Bytes());
  return bytes;
}

void Linear::Attach(ConstFloatSpan x,
                    ConstFloatSpan w,
                    bool x_stays,
                    std::span<const MatrixSpan<uint8_t>> memory,
                    LinearSaved& saved) const {
  const SavedPlans plans = PlanSaved(recipe_, x, w, x_stays);
  const std::span<const SavedPlan> all = plans.All();
  NUMSIM_REQUIRE(memory.size() == all.size(),
                 "Linear::Attach: {} pieces of memory, expected {}",
                 memory.size(),
                 all.size());
  saved = LinearSaved();
  saved.matrices.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].Bytes() != 0) all[i].Attach(memory[i], saved.matrices[i]);
  }
  PrepareSaved(plans, x, saved);
}

void Linear::Forward(ConstFloatSpan x,
                     ConstFloatSpan w,
                     FloatSpan y,
                     LinearSaved& saved,
                     RandomStream random,
                     LinearObserver* observer,
                     bool x_stays,
                     std::span<const float> channels,
                     bool updates_scales) {
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
  NUMSIM_REQUIRE(channels.empty() || recipe_[LinearGemm::kForward].a.hadamard.size == 0,
                 "Linear: {} channels of a layer whose forward GEMM is Hadamard-transformed",
                 channels.size());
  CheckTransforms(shape);
  if (!channels.empty()) RequireHost("a linear layer with channels", {place_});
  const LinearWorkspaces::Lease workspace(place_);
  LinearCall call(recipe_, place_, delayed_, *workspace, random, observer);
  PrepareSaved(PlanSaved(recipe_, x, w, x_stays), x, saved);
  saved.channels.assign(channels.begin(), channels.end());
  call.Forward(x, w, y, saved);
  if (updates_scales) delayed_.UpdateForward();
}

void Linear::Backward(ConstFloatSpan g,
                      ConstFloatSpan w,
                      const LinearSaved& saved,
                      FloatSpan dx,
                      FloatSpan dw,
                      RandomStream random,
                      LinearObserver* observer,
                      bool updates_scales) {
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
  const LinearWorkspaces::Lease workspace(place_);
  LinearCall call(recipe_, place_, delayed_, *workspace, random, observer);
  const auto shaped = [](auto tensor, size_t rows, size_t cols) {
    return decltype(tensor)(tensor.data, {rows, cols}, tensor.place, tensor.element);
  };
  call.Backward(shaped(g, shape.tokens, shape.out),
                shaped(w, shape.out, shape.in),
                saved,
                shaped(dx, shape.tokens, shape.in),
                shaped(dw, shape.out, shape.in));
  if (dw.data != nullptr && !saved.channels.empty()) {
    ScaleColumns(saved.channels, {static_cast<float*>(dw.data), dw.Elements()});
  }
  if (updates_scales) delayed_.UpdateBackward();
}

std::vector<float> Linear::SaveState() const { return delayed_.Save(); }

void Linear::RestoreState(std::span<const float> state) { delayed_.Restore(state, recipe_); }

}  // namespace numsim
