#include "numsim/linear/internal/linear_call_device.h"

#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_quantized_device.h"
#include "numsim/quantize/quantize_device.h"

namespace numsim {
namespace {

constexpr LinearOp kProductSteps[] = {
    LinearOp::kForwardProduct, LinearOp::kInputGradientProduct, LinearOp::kWeightGradientProduct};

// Returns true if a bf16 tensor is used as the operand without conversion.
bool TakesBf16(const OperandRecipe& recipe) {
  return recipe.Unscaled() && recipe.format.spec == kBf16 &&
         recipe.overflow == Overflow::kNonsaturate;
}

// Returns a bf16 tensor as a GEMM operand whose vectors are its rows, or its columns.
DeviceGemmOperand AsOperand(const DeviceMatrix& tensor, bool columns) {
  DeviceGemmOperand operand;
  operand.format = kBf16;
  operand.codes = tensor.data;
  operand.rows = columns ? tensor.shape.cols : tensor.shape.rows;
  operand.inner = columns ? tensor.shape.rows : tensor.shape.cols;
  operand.transposed = columns;
  return operand;
}

// Returns true if quantising a tensor again for its other operand would give the same codes. Not so
// with stochastic rounding, because each operand has its own random bits.
bool GivesTheSameCodes(const OperandRecipe& rows, const OperandRecipe& columns) {
  return !TakesBf16(rows) && rows.rounding.mode != RoundingMode::kStochastic &&
         SharesCodes(rows, columns);
}

// Returns true if one set of codes of X serves the forward GEMM and the weight gradient.
bool SharesX(const LinearRecipe& recipe) {
  return SharesCodes(recipe[LinearGemm::kForward].a, recipe[LinearGemm::kWeightGradient].b);
}

// Returns true if one set of codes of G serves both gradients.
bool SharesG(const LinearRecipe& recipe) {
  return SharesCodes(recipe[LinearGemm::kInputGradient].a, recipe[LinearGemm::kWeightGradient].a);
}

size_t CodeBytes(const DeviceQuantizedMatrix& matrix, const OperandRecipe& recipe) {
  const size_t scales = recipe.Unscaled() ? 0 : matrix.ScaleCount() * sizeof(float);
  return matrix.shape.Elements() * matrix.format.StorageBytes() + scales;
}

}  // namespace

bool KeepsCodes(const LinearRecipe& recipe) {
  if (recipe.saves == LinearSaves::kQuantized) return true;
  const GemmRecipe& forward = recipe[LinearGemm::kForward];
  return GivesTheSameCodes(forward.a, recipe[LinearGemm::kWeightGradient].b) &&
         GivesTheSameCodes(forward.b, recipe[LinearGemm::kInputGradient].b);
}

size_t SavedBytes(const LinearRecipe& recipe, const DeviceLinearSaved& saved) {
  if (!KeepsCodes(recipe)) return saved.shape.tokens * saved.shape.in * sizeof(uint16_t);
  const GemmRecipe& forward = recipe[LinearGemm::kForward];
  return CodeBytes(saved.x, forward.a) + CodeBytes(saved.w, forward.b);
}

void DeviceLinearCall::Make(LinearOperand operand,
                            LinearOp step,
                            const DeviceMatrix& tensor,
                            Orders orders,
                            DeviceQuantizedMatrix& out) {
  const auto index = static_cast<size_t>(operand);
  const GemmRecipe& product = recipe_.products[index / 2];
  const OperandRecipe& recipe = index % 2 == 0 ? product.a : product.b;
  const bool transpose_enters = index >= static_cast<size_t>(LinearOperand::kInputGradientW);
  DeviceQuantizeOptions options;
  options.format = recipe.format.spec;
  options.rounding = recipe.rounding;
  options.overflow = recipe.overflow;
  options.layout = transpose_enters ? Transposed(recipe.layout) : recipe.layout;
  options.scale_rule = recipe.scale_rule;
  options.random.stream = {random_.seed, 8 * random_.stream + index};
  options.codes = orders.codes;
  options.transposed = orders.transposed;
  const StepScope scope(observer_, step);
  Quantize(tensor, options, out, scratch_.quantize, stream_);
}

void DeviceLinearCall::Multiply(LinearGemm product,
                                const DeviceGemmOperand& a,
                                const DeviceGemmOperand& b,
                                const MutableDeviceMatrix& out) {
  const StepScope scope(observer_, kProductSteps[static_cast<size_t>(product)]);
  Gemm(a, b, recipe_[product].accumulation, out, scratch_.gemm, stream_);
}

void DeviceLinearCall::Forward(const DeviceMatrix& x,
                               const DeviceMatrix& w,
                               const MutableDeviceMatrix& y) {
  const GemmRecipe& forward = recipe_[LinearGemm::kForward];
  DeviceGemmOperand a = AsOperand(x, false), b = AsOperand(w, false);
  if (keeps_codes_ || !TakesBf16(forward.a)) {
    const Orders orders{.codes = true, .transposed = keeps_codes_ && SharesX(recipe_)};
    Make(LinearOperand::kForwardX, LinearOp::kQuantizeX, x, orders, saved_.x);
    a = numsim::AsOperand(saved_.x, false);
  }
  if (keeps_codes_ || !TakesBf16(forward.b)) {
    const Orders orders{.codes = true, .transposed = keeps_codes_};
    Make(LinearOperand::kForwardW, LinearOp::kQuantizeW, w, orders, saved_.w);
    b = numsim::AsOperand(saved_.w, false);
  }
  Multiply(LinearGemm::kForward, a, b, y);
}

void DeviceLinearCall::Backward(const DeviceMatrix& g,
                                const DeviceMatrix& x,
                                const DeviceMatrix& w,
                                const MutableDeviceMatrix& dx,
                                const MutableDeviceMatrix& dw) {
  const bool want_dx = dx.data != nullptr, want_dw = dw.data != nullptr;
  const bool plain_g = TakesBf16(recipe_[LinearGemm::kInputGradient].a);
  const bool dw_takes_it = want_dw && SharesG(recipe_);
  if (!plain_g && (want_dx || dw_takes_it)) {
    const Orders orders{.codes = want_dx, .transposed = dw_takes_it};
    Make(LinearOperand::kInputGradientG, LinearOp::kQuantizeG, g, orders, scratch_.g);
  }
  if (want_dx) {
    const DeviceGemmOperand b = TransposedW(w);
    const DeviceGemmOperand a =
        plain_g ? AsOperand(g, false) : numsim::AsOperand(scratch_.g, false);
    Multiply(LinearGemm::kInputGradient, a, b, dx);
  }
  if (want_dw) {
    const DeviceGemmOperand a = TransposedG(g);
    const DeviceGemmOperand b = TransposedX(x);
    Multiply(LinearGemm::kWeightGradient, a, b, dw);
  }
}

DeviceGemmOperand DeviceLinearCall::TransposedW(const DeviceMatrix& w) {
  if (keeps_codes_) return numsim::AsOperand(saved_.w, true);
  if (TakesBf16(recipe_[LinearGemm::kInputGradient].b)) return AsOperand(w, true);
  Make(LinearOperand::kInputGradientW,
       LinearOp::kQuantizeWTransposed,
       w,
       {.transposed = true},
       scratch_.w_transposed);
  return numsim::AsOperand(scratch_.w_transposed, true);
}

DeviceGemmOperand DeviceLinearCall::TransposedG(const DeviceMatrix& g) {
  if (TakesBf16(recipe_[LinearGemm::kWeightGradient].a)) return AsOperand(g, true);
  if (SharesG(recipe_)) return numsim::AsOperand(scratch_.g, true);
  Make(LinearOperand::kWeightGradientG,
       LinearOp::kQuantizeGTransposed,
       g,
       {.transposed = true},
       scratch_.g_transposed);
  return numsim::AsOperand(scratch_.g_transposed, true);
}

DeviceGemmOperand DeviceLinearCall::TransposedX(const DeviceMatrix& x) {
  if (keeps_codes_ && SharesX(recipe_)) return numsim::AsOperand(saved_.x, true);
  const DeviceMatrix values = keeps_codes_ ? DequantizedX() : x;
  if (TakesBf16(recipe_[LinearGemm::kWeightGradient].b)) return AsOperand(values, true);
  Make(LinearOperand::kWeightGradientX,
       LinearOp::kQuantizeXTransposed,
       values,
       {.transposed = true},
       scratch_.x_transposed);
  return numsim::AsOperand(scratch_.x_transposed, true);
}

DeviceMatrix DeviceLinearCall::DequantizedX() {
  const bool in_bf16 = TakesBf16(recipe_[LinearGemm::kWeightGradient].b);
  MutableDeviceMatrix values;
  values.element = in_bf16 ? DeviceElement::kBfloat16 : DeviceElement::kFloat32;
  values.shape = saved_.x.shape;
  scratch_.x_values.Reserve(values.Bytes());
  values.data = scratch_.x_values.data();
  const StepScope scope(observer_, LinearOp::kDequantizeX);
  Dequantize(saved_.x.format,
             saved_.x.codes.data(),
             saved_.x.layout,
             saved_.x.scales.first(saved_.x.ScaleCount()),
             values,
             stream_);
  return values;
}

}  // namespace numsim
