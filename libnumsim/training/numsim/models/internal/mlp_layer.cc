#include "numsim/models/internal/mlp_layer.h"

#include "numsim/base/require.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/activation.h"

namespace numsim {
namespace {

size_t UpColumns(const MlpOptions& options) {
  return options.kind == MlpKind::kGelu ? options.hidden : 2 * options.hidden;
}

}  // namespace

template <typename T>
MlpLayer<T>::MlpLayer(LinearFactory<T>& linears, const std::string& name, const MlpOptions& options)
    : hidden_name_(name + ".hidden"),
      options_(options),
      up_(linears.Make(name + (options.kind == MlpKind::kGelu ? ".up" : ".gate_up"),
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
      gated_(options.kind, linears.parameters().place()),
      up_output_(linears.parameters().place()),
      hidden_(linears.parameters().place()) {
  NUMSIM_REQUIRE(options.kind != MlpKind::kSmoothSwigluToken || !options.biases,
                 "MlpLayer: {} with biases, which its scales would multiply",
                 ToString(options.kind));
}

template <typename T>
void MlpLayer<T>::Forward(const Pass<T>& pass, In<T> x, MatrixSpan<T> y) {
  const MatrixSpan<T> up = up_output_.Resize(x.rows, UpColumns(options_));
  const MatrixSpan<T> hidden = hidden_.Resize(x.rows, options_.hidden);
  up_.Forward(pass, x, up);
  {
    const TimedPart timed(pass.profile, StepPhase::kActivation);
    if (options_.kind == MlpKind::kGelu) {
      Gelu<T>(up, hidden);
    } else {
      gated_.Forward(up, hidden);
    }
  }
  pass.Observe(hidden_name_, TensorRole::kActivation, hidden);
  down_.Forward(pass, hidden, y, gated_.ChannelFactors());
  ScaleRows(gated_.TokenFactors(), y);
}

template <typename T>
void MlpLayer<T>::Backward(const Pass<T>& pass,
                           MatrixSpan<T> g,
                           MatrixSpan<T> dx,
                           MlpScratch<T>& scratch) {
  const MatrixSpan<T> up = up_output_.View();
  const MatrixSpan<T> hidden_gradient = scratch.hidden.Resize(up.rows, options_.hidden);
  const MatrixSpan<T> up_gradient = scratch.up.Resize(up.rows, up.cols);
  MatrixSpan<T> output_gradient = g;
  if (!gated_.TokenFactors().empty()) {
    output_gradient = scratch.output.Resize(g.rows, g.cols);
    Copy<T>(g, output_gradient);
    ScaleRows(gated_.TokenFactors(), output_gradient);
  }
  down_.Backward(pass, output_gradient, hidden_gradient);
  pass.Observe(hidden_name_, TensorRole::kGradient, hidden_gradient);
  {
    const TimedPart timed(pass.profile, StepPhase::kActivation);
    if (options_.kind == MlpKind::kGelu) {
      GeluGradient<T>(hidden_gradient, up, up_gradient);
    } else {
      gated_.Backward(hidden_gradient, up, up_gradient);
    }
  }
  up_.Backward(pass, up_gradient, dx);
}

template class MlpLayer<float>;
template class MlpLayer<double>;

}  // namespace numsim
