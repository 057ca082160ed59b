#include "numsim/models/internal/linear_layer.h"

#include <type_traits>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/product.h"

namespace numsim {
namespace {

// Maximum number of linear layers in a model; each step uses a random stream per layer.
constexpr size_t kMaxLayers = 4096;

std::optional<LinearGemm> ProductOf(LinearOp step) {
  switch (step) {
    case LinearOp::kForwardProduct:
      return LinearGemm::kForward;
    case LinearOp::kInputGradientProduct:
      return LinearGemm::kInputGradient;
    case LinearOp::kWeightGradientProduct:
      return LinearGemm::kWeightGradient;
    default:
      return std::nullopt;
  }
}

// Times the operations of a layer, and reports its quantised operands and GEMMs to the pass
// observer.
class LayerObserver : public LinearObserver {
 public:
  LayerObserver(const Pass<float>& pass, std::string_view layer) : pass_(pass), layer_(layer) {}

  void Begin(LinearOp step) override {
    timed_.emplace(pass_.profile, ProductOf(step) ? StepPhase::kProduct : StepPhase::kQuantize);
  }
  void End(LinearOp step) override {
    timed_.reset();
    const std::optional<LinearGemm> product = ProductOf(step);
    if (product && pass_.observer != nullptr) pass_.observer->Multiplied(layer_, *product);
  }
  void Quantized(LinearOperand operand,
                 ConstFloatSpan original,
                 const QuantizedMatrix& result) override {
    if (pass_.observer == nullptr) return;
    pass_.observer->Quantized(layer_, operand, original.Float32(), result);
  }

 private:
  const Pass<float>& pass_;
  std::string_view layer_;
  std::optional<TimedPart> timed_;
};

}  // namespace

template <typename T>
LinearLayer<T>::LinearLayer(ParameterList<T>& parameters,
                            std::string name,
                            const LinearLayerOptions& options,
                            size_t number)
    : name_(std::move(name)),
      number_(number),
      weight_(&parameters.Add(
          name_ + ".weight", ParameterRole::kMatrix, options.out, options.in, options.weight)),
      bias_(options.bias
                ? &parameters.Add(name_ + ".bias", ParameterRole::kBias, 1, options.out, {})
                : nullptr),
      linear_(MakeLinearRecipe(options.precision), parameters.place()) {
  NUMSIM_CHECK(number < kMaxLayers, "layer {}", number);
}

template <typename T>
void LinearLayer<T>::CheckShape(size_t rows) const {
  const auto weight = weight_->value.View();
  linear_.CheckShape({.tokens = rows, .in = weight.cols, .out = weight.rows});
}

template <typename T>
RandomStream LinearLayer<T>::Draws(const Pass<T>& pass) const {
  return {DeriveSeed(pass.seed, RandomPurpose::kLinear), pass.step * kMaxLayers + number_};
}

template <typename T>
void LinearLayer<T>::Forward(const Pass<T>& pass,
                             In<T> x,
                             MatrixSpan<T> y,
                             std::span<const float> channels) {
  if (pass.observer != nullptr) pass.observer->Input(name_, x);
  const MatrixSpan<const T> w = weight_->value.View();
  if constexpr (std::is_same_v<T, float>) {
    LayerObserver observer(pass, name_);
    linear_.Forward(x, w, y, saved_, Draws(pass), &observer, true, channels, pass.updates_scales);
  } else {
    NUMSIM_CHECK(channels.empty(), "{} channels of a layer of double", channels.size());
    x_ = x;
    const TimedPart timed(pass.profile, StepPhase::kProduct);
    Multiply(x, false, w, true, {}, y);
  }
  if (bias_ != nullptr) {
    const TimedPart timed(pass.profile, StepPhase::kResidual);
    AddBias(bias_->value.View(), y);
  }
  pass.Observe(name_, TensorRole::kActivation, y);
}

template <typename T>
void LinearLayer<T>::Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx) {
  pass.Observe(name_, TensorRole::kGradient, g);
  if (bias_ != nullptr) {
    const TimedPart timed(pass.profile, StepPhase::kResidual);
    ColumnSums(g, bias_->gradient.View());
  }
  const MatrixSpan<const T> w = weight_->value.View();
  const MatrixSpan<T> dw = weight_->gradient.View();
  if constexpr (std::is_same_v<T, float>) {
    LayerObserver observer(pass, name_);
    linear_.Backward(g, w, saved_, dx, dw, Draws(pass), &observer, pass.updates_scales);
  } else {
    const TimedPart timed(pass.profile, StepPhase::kProduct);
    if (dx.data != nullptr) Multiply(g, false, w, false, {}, dx);
    Multiply(g, true, x_, false, {}, dw);
  }
}

template class LinearLayer<float>;
template class LinearLayer<double>;

}  // namespace numsim
