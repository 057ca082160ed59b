#include "numsim/models/internal/attention_layer.h"

#include "numsim/ops/shared/sequence.h"

namespace numsim {
namespace {

template <typename T>
std::optional<NormLayer<T>> MakeNorm(ParameterList<T>& parameters,
                                     std::string name,
                                     const std::optional<NormOptions>& options) {
  if (!options) return std::nullopt;
  return NormLayer<T>(parameters, std::move(name), *options);
}

}  // namespace

template <typename T>
AttentionLayer<T>::AttentionLayer(LinearFactory<T>& linears,
                                  const std::string& name,
                                  const AttentionOptions& options)
    : core_name_(name + ".core"),
      options_(options),
      shape_{.heads = options.heads,
             .head_dim = options.width / options.heads,
             .causal = options.causal},
      recipe_(MakeAttentionRecipe(options.precision)),
      qkv_linear_(linears.Make(name + ".qkv",
                               {.in = options.width,
                                .out = 3 * options.width,
                                .bias = options.biases,
                                .weight = options.qkv,
                                .rows = options.length})),
      query_norm_(MakeNorm(linears.parameters(), name + ".query_norm", options.qk_norm)),
      key_norm_(MakeNorm(linears.parameters(), name + ".key_norm", options.qk_norm)),
      out_linear_(linears.Make(name + ".out",
                               {.in = options.width,
                                .out = options.width,
                                .bias = options.biases,
                                .weight = options.out,
                                .rows = options.length})),
      cosines_(linears.parameters().place()),
      sines_(linears.parameters().place()),
      qkv_(linears.parameters().place()),
      log_sums_(linears.parameters().place()),
      core_(linears.parameters().place()) {
  if (options.rotary) {
    RotaryTables<T>(options.rope_base,
                    shape_.head_dim,
                    cosines_.Resize(options.length, shape_.head_dim / 2),
                    sines_.Resize(options.length, shape_.head_dim / 2));
  }
}

// Rotates queries and keys in place; with `inverse`, back-propagates through the rotation.
template <typename T>
void AttentionLayer<T>::Rotate(const Pass<T>& pass,
                               bool inverse,
                               MatrixSpan<T> q,
                               MatrixSpan<T> k) const {
  if (!options_.rotary) return;
  const TimedPart timed(pass.profile, StepPhase::kAttention);
  const In<T> cosines = cosines_.View().Rows(0, shape_.length);
  const In<T> sines = sines_.View().Rows(0, shape_.length);
  RotatePositions<T>(cosines, sines, shape_.head_dim, inverse, q);
  RotatePositions<T>(cosines, sines, shape_.head_dim, inverse, k);
}

template <typename T>
void AttentionLayer<T>::Forward(
    const Pass<T>& pass, In<T> x, size_t batch, size_t length, MatrixSpan<T> y) {
  NUMSIM_CHECK(x.rows == batch * length && length <= options_.length,
               "{}: {} rows, length {}",
               core_name_,
               x.rows,
               length);
  shape_.batch = batch;
  shape_.length = length;
  const size_t width = options_.width;
  const MatrixSpan<T> qkv = qkv_.Resize(x.rows, 3 * width);
  qkv_linear_.Forward(pass, x, qkv);
  query_ = qkv.Columns(0, width);
  key_ = qkv.Columns(width, width);
  if (options_.qk_norm) {
    query_ = query_norm_->Forward(pass, query_);
    key_ = key_norm_->Forward(pass, key_);
  }
  Rotate(pass, false, query_, key_);
  const MatrixSpan<T> core = core_.Resize(x.rows, width);
  const MatrixSpan<T> log_sums = log_sums_.Resize(x.rows, options_.heads);
  {
    const TimedPart timed(pass.profile, StepPhase::kAttention);
    Attention<T>(shape_, query_, key_, qkv.Columns(2 * width, width), log_sums, core, recipe_);
  }
  pass.Observe(core_name_, TensorRole::kActivation, core);
  out_linear_.Forward(pass, core, y);
}

template <typename T>
void AttentionLayer<T>::Backward(const Pass<T>& pass,
                                 MatrixSpan<T> g,
                                 MatrixSpan<T> dx,
                                 AttentionScratch<T>& scratch) {
  const size_t width = options_.width;
  const MatrixSpan<T> core_gradient = scratch.core.Resize(g.rows, width);
  out_linear_.Backward(pass, g, core_gradient);
  pass.Observe(core_name_, TensorRole::kGradient, core_gradient);

  const MatrixSpan<T> qkv_gradient = scratch.qkv.Resize(g.rows, 3 * width);
  const MatrixSpan<T> dq = qkv_gradient.Columns(0, width);
  const MatrixSpan<T> dk = qkv_gradient.Columns(width, width);
  // A norm's input gradient must not overwrite the gradient of its output.
  const bool norm = options_.qk_norm.has_value();
  const MatrixSpan<T> query_gradient = norm ? scratch.query.Resize(g.rows, width) : dq;
  const MatrixSpan<T> key_gradient = norm ? scratch.key.Resize(g.rows, width) : dk;
  {
    const TimedPart timed(pass.profile, StepPhase::kAttention);
    AttentionGradient<T>(shape_,
                         core_gradient,
                         query_,
                         key_,
                         qkv_.View().Columns(2 * width, width),
                         log_sums_.View(),
                         core_.View(),
                         query_gradient,
                         key_gradient,
                         qkv_gradient.Columns(2 * width, width),
                         recipe_);
  }
  Rotate(pass, true, query_gradient, key_gradient);
  if (norm) {
    key_norm_->Backward(pass, key_gradient, dk);
    query_norm_->Backward(pass, query_gradient, dq);
  }
  qkv_linear_.Backward(pass, qkv_gradient, dx);
}

template class AttentionLayer<float>;
template class AttentionLayer<double>;

}  // namespace numsim
