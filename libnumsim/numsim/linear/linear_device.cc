#include "numsim/linear/linear_device.h"

#include <utility>

#include "numsim/base/require.h"
#include "numsim/linear/internal/linear_call_device.h"

namespace numsim {
namespace {

void CheckMatrix(const char* tensor, const DeviceMatrix& matrix, size_t rows, size_t cols) {
  NUMSIM_REQUIRE(matrix.shape.rows == rows && matrix.shape.cols == cols,
                 "DeviceLinear: '{}' is {} x {}, expected {} x {}",
                 tensor,
                 matrix.shape.rows,
                 matrix.shape.cols,
                 rows,
                 cols);
  NUMSIM_REQUIRE(matrix.element == DeviceElement::kBfloat16,
                 "DeviceLinear: '{}' is float32, expected bf16",
                 tensor);
  NUMSIM_REQUIRE(
      matrix.data != nullptr || rows * cols == 0, "DeviceLinear: '{}' has no data", tensor);
}

void CheckProducts(const LinearRecipe& recipe) {
  for (const LinearGemm product : kProducts) {
    const GemmRecipe& made = recipe[product];
    if (MultipliesOnDevice(made.a.format.spec, made.b.format.spec, made.accumulation)) continue;
    throw Error::Format("kind '{}', {} product: {} does not multiply {} by {} under rule {}",
                        recipe.kind,
                        ToString(product),
                        Device().name,
                        made.a.format.name,
                        made.b.format.name,
                        ToString(made.accumulation));
  }
}

}  // namespace

struct DeviceLinear::State {
  LinearRecipe recipe;
  DeviceLinearSaved saved;
  size_t kept_bytes = 0;
  DeviceLinearScratch scratch;
};

DeviceLinear::DeviceLinear(LinearRecipe recipe) {
  CheckOnDevice(recipe);
  CheckProducts(recipe);
  if (recipe.saves == LinearSaves::kQuantized) {
    NUMSIM_REQUIRE(
        SharesCodes(recipe[LinearGemm::kForward].b, recipe[LinearGemm::kInputGradient].b),
        "DeviceLinear: recipe '{}': expected equal operands of W",
        recipe.kind);
  }
  state_ = std::make_unique<State>();
  state_->recipe = std::move(recipe);
}

DeviceLinear::~DeviceLinear() = default;
DeviceLinear::DeviceLinear(DeviceLinear&&) noexcept = default;
DeviceLinear& DeviceLinear::operator=(DeviceLinear&&) noexcept = default;

const LinearRecipe& DeviceLinear::recipe() const { return state_->recipe; }

bool DeviceLinear::KeepsCodes() const { return numsim::KeepsCodes(state_->recipe); }

size_t DeviceLinear::SavedBytes() const { return state_->kept_bytes; }

void DeviceLinear::Forward(const DeviceMatrix& x,
                           const DeviceMatrix& w,
                           const MutableDeviceMatrix& y,
                           DeviceStream& stream,
                           RandomStream random,
                           LinearObserver* observer) {
  const LinearShape shape{x.shape.rows, x.shape.cols, w.shape.rows};
  CheckMatrix("x", x, shape.tokens, shape.in);
  CheckMatrix("w", w, shape.out, shape.in);
  CheckMatrix("y", y, shape.tokens, shape.out);
  State& state = *state_;
  DeviceLinearCall call(state.recipe, state.saved, state.scratch, stream, random, observer);
  call.Forward(x, w, y);
  state.saved.shape = shape;
  state.kept_bytes = numsim::SavedBytes(state.recipe, state.saved);
}

void DeviceLinear::Backward(const DeviceMatrix& g,
                            const DeviceMatrix& x,
                            const DeviceMatrix& w,
                            const MutableDeviceMatrix& dx,
                            const MutableDeviceMatrix& dw,
                            DeviceStream& stream,
                            RandomStream random,
                            LinearObserver* observer) {
  State& state = *state_;
  const LinearShape& shape = state.saved.shape;
  CheckMatrix("g", g, shape.tokens, shape.out);
  if (dx.data != nullptr) CheckMatrix("dx", dx, shape.tokens, shape.in);
  if (dw.data != nullptr) CheckMatrix("dw", dw, shape.out, shape.in);
  if (!KeepsCodes()) {
    if (dx.data != nullptr) CheckMatrix("w", w, shape.out, shape.in);
    if (dw.data != nullptr) CheckMatrix("x", x, shape.tokens, shape.in);
  }
  DeviceLinearCall call(state.recipe, state.saved, state.scratch, stream, random, observer);
  call.Backward(g, x, w, dx, dw);
}

}  // namespace numsim
