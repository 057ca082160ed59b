#include <cmath>
#include <cstdint>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/models/internal/embedding_layer.h"
#include "numsim/models/internal/field_checks.h"
#include "numsim/models/internal/linear_factory.h"
#include "numsim/models/internal/model_kinds.h"
#include "numsim/models/internal/transformer.h"
#include "numsim/ops/shared/index_column.h"

namespace numsim {
namespace {

constexpr double kDeviation = 0.02;  // [GPT2]

double Deviation(const ModelConfig& config) {
  return config.initial_deviation > 0 ? config.initial_deviation : kDeviation;
}

// Returns ModelConfig::hidden or its default.
size_t HiddenOf(const ModelConfig& config) {
  if (config.hidden != 0) return config.hidden;
  if (config.kind == ModelKind::kGpt) return 4 * config.width;
  constexpr size_t kMultiple = 32;
  return (8 * config.width + 3 * kMultiple - 1) / (3 * kMultiple) * kMultiple;
}

TransformerConfig BlocksOf(const ModelConfig& config) {
  const bool llama = config.kind == ModelKind::kLlama;
  const double deviation = Deviation(config);
  const double branches = 2 * static_cast<double>(config.layers);
  const Initial inner{0, static_cast<float>(deviation)};
  const Initial branch_end{
      0, static_cast<float>(config.scaled_branches ? deviation / std::sqrt(branches) : deviation)};
  return {.layers = config.layers,
          .width = config.width,
          .heads = config.heads,
          .hidden = HiddenOf(config),
          .length = config.context,
          .norm = llama ? NormKind::kRms : NormKind::kLayer,
          .mlp = llama ? config.mlp : MlpKind::kGelu,
          .causal = true,
          .rotary = llama,
          .biases = !llama,
          .qk_norm = config.qk_norm,
          .attention = config.attention,
          .layer_scale = config.layer_scale,
          .norm_epsilon = config.norm_epsilon,
          .rope_base = config.rope_base,
          .qkv = inner,
          .attention_out = branch_end,
          .mlp_up = inner,
          .mlp_down = branch_end};
}

EmbeddingOptions EmbeddingOf(const ModelConfig& config) {
  const float deviation = static_cast<float>(Deviation(config));
  return {.vocabulary = config.vocabulary,
          .width = config.width,
          .positions = config.kind == ModelKind::kGpt ? config.context : 0,
          .token = {0, deviation},
          .position = {0, deviation / 2}};
}

// Model of kind llama or gpt. The tensor names are "embedding",
// those of a transformer with prefix "blocks" (transformer.h), "final_norm" and "head". Its
// parameters besides those of the transformer are embedding.tokens, embedding.positions (gpt),
// final_norm.gain, final_norm.bias (gpt) and head.weight.
//
// Initially, weights are normal with deviation 0.02 and positions with 0.01, biases are 0 and gains
// 1; the weights of the linear layers that end a branch are divided by sqrt(2 layers) [GPT2]. The
// papers on Llama do not state their initial values, so llama uses the same.
template <typename T>
class LanguageModel final : public LayeredModel<T> {
 public:
  LanguageModel(const ModelConfig& config,
                const LinearPrecision& precision,
                uint64_t seed,
                InitialValues initial)
      : LayeredModel<T>(precision, seed, initial),
        config_(config),
        blocks_config_(BlocksOf(config)),
        embedding_(*this->parameters_, "embedding", EmbeddingOf(config)),
        blocks_(this->linears_, "blocks", blocks_config_),
        final_norm_(*this->parameters_,
                    "final_norm",
                    {blocks_config_.norm, config.width, config.norm_epsilon}),
        head_(this->linears_.Make("head",
                                  {.in = config.width,
                                   .out = config.vocabulary,
                                   .weight = {0, static_cast<float>(Deviation(config))},
                                   .rows = config.context,
                                   .edge = true})),
        targets_(this->parameters_->place()),
        logits_(this->parameters_->place()),
        normed_gradient_(this->parameters_->place()),
        stream_gradient_(this->parameters_->place()) {
    this->linears_.CheckOverrides();
  }

  LossSum Forward(const Pass<T>& pass, const Batch& batch) override;
  void Backward(const Pass<T>& pass) override;

 private:
  ModelConfig config_;
  TransformerConfig blocks_config_;
  EmbeddingLayer<T> embedding_;
  Transformer<T> blocks_;
  NormLayer<T> final_norm_;
  LinearLayer<T>& head_;
  IndexColumn targets_;
  Buffer<T> logits_;  // after a Forward with gradients: their gradient
  Buffer<T> normed_gradient_, stream_gradient_;
};

template <typename T>
LossSum LanguageModel<T>::Forward(const Pass<T>& pass, const Batch& batch) {
  const size_t rows = batch.examples * batch.length;
  const MatrixShape shape{batch.examples, batch.length};
  RequireSize(batch.tokens.size(), shape, "Model::Forward", "batch.tokens");
  RequireSize(batch.targets.size(), shape, "Model::Forward", "batch.targets");
  NUMSIM_REQUIRE(batch.length <= config_.context,
                 "Model::Forward: sequences of {} tokens, expected at most {}",
                 batch.length,
                 config_.context);
  targets_.Upload(batch.targets);
  const MatrixSpan<T> embedded = embedding_.Forward(pass, batch.tokens, batch.length);
  const MatrixSpan<T> stream = blocks_.Forward(pass, embedded, batch.examples, batch.length);
  const MatrixSpan<T> logits = logits_.Resize(rows, config_.vocabulary);
  head_.Forward(pass, final_norm_.Forward(pass, stream), logits);
  const TimedPart timed(pass.profile, StepPhase::kLoss);
  return CrossEntropy<T>(
      logits, targets_.View(), pass.loss_scale, pass.gradients ? logits : MatrixSpan<T>());
}

template <typename T>
void LanguageModel<T>::Backward(const Pass<T>& pass) {
  const MatrixSpan<T> gradient = logits_.View();
  const MatrixSpan<T> normed_gradient = normed_gradient_.Resize(gradient.rows, config_.width);
  const MatrixSpan<T> stream_gradient = stream_gradient_.Resize(gradient.rows, config_.width);
  head_.Backward(pass, gradient, normed_gradient);
  final_norm_.Backward(pass, normed_gradient, stream_gradient);
  embedding_.Backward(pass, blocks_.Backward(pass, stream_gradient));
}

void CheckGpt(const ModelConfig& config) {
  CheckHeads(config);
  CheckTokens(config);
}

void CheckLlama(const ModelConfig& config) {
  CheckHeads(config);
  const size_t head_dim = config.width / config.heads;
  if (head_dim % 2 != 0) {
    throw KeyError::Format(
        "model.heads", "rotary positions need an even width of a head, not {}", head_dim);
  }
  CheckTokens(config);
}

bool FitText(ModelConfig& config, const DataShape& data) {
  if (data.vocabulary == 0 || data.HasImages()) return false;
  config.vocabulary = data.vocabulary;
  return true;
}

}  // namespace

const ModelKindRow& LlamaRow() {
  static constexpr ModelKindRow kRow = MakeRow<LanguageModel>(
      {.has_tokens = true}, "text, generated-text or zipf", CheckLlama, FitText);
  return kRow;
}

const ModelKindRow& GptRow() {
  static constexpr ModelKindRow kRow = MakeRow<LanguageModel>(
      {.has_tokens = true}, "text, generated-text or zipf", CheckGpt, FitText);
  return kRow;
}

}  // namespace numsim
