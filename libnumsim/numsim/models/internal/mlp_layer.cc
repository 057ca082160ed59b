#include "numsim/models/internal/mlp_layer.h"

#include "numsim/ops/shared/activation.h"

namespace numsim {
namespace {

size_t UpColumns(const MlpOptions& options) {
  return options.kind == MlpKind::kSwiglu ? 2 * options.hidden : options.hidden;
}

}  // namespace

template <typename T>
MlpLayer<T>::MlpLayer(LinearFactory<T>& linears, const std::string& name, const MlpOptions& options)
    : hidden_name_(name + ".hidden"),
      options_(options),
      up_(linears.Make(name + (options.kind == MlpKind::kSwiglu ? ".gate_up" : ".up"),
                       {.in = options.width,
                        .out = UpColumns(options),
                        .bias = options.biases,
                        .weight = options.up,
                        .rows = options.rows})),
      down_(linears.Make(name + ".down",
                         {.in = options.hidden,
                          .out = options.width,
                          .bias = options.biases,
                          .weight = options.down,
                          .rows = options.rows})),
      up_output_(linears.parameters().place()),
      hidden_(linears.parameters().place()) {}

template <typename T>
void MlpLayer<T>::Forward(const Pass<T>& pass, In<T> x, MatrixSpan<T> y) {
  const MatrixSpan<T> up = up_output_.Resize(x.rows, UpColumns(options_));
  const MatrixSpan<T> hidden = hidden_.Resize(x.rows, options_.hidden);
  up_.Forward(pass, x, up);
  {
    const TimedPart timed(pass.profile, StepPhase::kActivation);
    if (options_.kind == MlpKind::kSwiglu) {
      Swiglu<T>(up, hidden);
    } else {
      Gelu<T>(up, hidden);
    }
  }
  pass.Observe(hidden_name_, TensorRole::kActivation, hidden);
  down_.Forward(pass, hidden, y);
}

template <typename T>
void MlpLayer<T>::Backward(const Pass<T>& pass,
                           MatrixSpan<T> g,
                           MatrixSpan<T> dx,
                           MlpScratch<T>& scratch) {
  const MatrixSpan<T> up = up_output_.View();
  const MatrixSpan<T> hidden_gradient = scratch.hidden.Resize(up.rows, options_.hidden);
  const MatrixSpan<T> up_gradient = scratch.up.Resize(up.rows, up.cols);
  down_.Backward(pass, g, hidden_gradient);
  pass.Observe(hidden_name_, TensorRole::kGradient, hidden_gradient);
  {
    const TimedPart timed(pass.profile, StepPhase::kActivation);
    if (options_.kind == MlpKind::kSwiglu) {
      SwigluGradient<T>(hidden_gradient, up, up_gradient);
    } else {
      GeluGradient<T>(hidden_gradient, up, up_gradient);
    }
  }
  up_.Backward(pass, up_gradient, dx);
}

template class MlpLayer<float>;
template class MlpLayer<double>;

}  // namespace numsim
