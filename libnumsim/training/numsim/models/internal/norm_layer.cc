#include "numsim/models/internal/norm_layer.h"

#include <utility>

#include "numsim/ops/shared/norm.h"

namespace numsim {

template <typename T>
NormLayer<T>::NormLayer(ParameterList<T>& parameters, std::string name, const NormOptions& options)
    : name_(std::move(name)),
      options_(options),
      gain_(&parameters.Add(name_ + ".gain", ParameterRole::kGain, 1, options.size, {1, 0})),
      bias_(nullptr),
      y_(parameters.place()),
      inverse_(parameters.place()),
      mean_(parameters.place()) {
  if (options.kind == NormKind::kLayer) {
    bias_ = &parameters.Add(name_ + ".bias", ParameterRole::kBias, 1, options.size, {});
  }
}

template <typename T>
MatrixSpan<T> NormLayer<T>::Forward(const Pass<T>& pass, In<T> x) {
  NUMSIM_CHECK(x.cols % options_.size == 0, "{} of {} columns", name_, x.cols);
  x_ = x;
  const size_t vectors = x.cols / options_.size;
  const MatrixSpan<T> y = y_.Resize(x.rows, x.cols);
  const MatrixSpan<T> inverse = inverse_.Resize(x.rows, vectors);
  {
    const TimedPart timed(pass.profile, StepPhase::kNorm);
    if (bias_ == nullptr) {
      RmsNorm<T>(x, gain_->value.View(), options_.epsilon, inverse, y);
    } else {
      const MatrixSpan<T> mean = mean_.Resize(x.rows, vectors);
      LayerNorm<T>(x, gain_->value.View(), bias_->value.View(), options_.epsilon, mean, inverse, y);
    }
  }
  pass.Observe(name_, TensorRole::kActivation, y);
  return y;
}

template <typename T>
void NormLayer<T>::Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx) {
  NUMSIM_CHECK(g.rows == x_.rows && g.cols == x_.cols, "{}: {} x {}", name_, g.rows, g.cols);
  pass.Observe(name_, TensorRole::kGradient, g);
  const TimedPart timed(pass.profile, StepPhase::kNorm);
  const MatrixSpan<T> gain_gradient = gain_->gradient.View();
  if (bias_ == nullptr) {
    RmsNormGradient<T>(g, x_, gain_->value.View(), inverse_.View(), gain_gradient, dx);
  } else {
    LayerNormGradient<T>(g,
                         x_,
                         gain_->value.View(),
                         mean_.View(),
                         inverse_.View(),
                         gain_gradient,
                         bias_->gradient.View(),
                         dx);
  }
}

template class NormLayer<float>;
template class NormLayer<double>;

}  // namespace numsim
