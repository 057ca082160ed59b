// Small language models and batches for tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/data/source.h"
#include "numsim/models/model.h"
#include "numsim/random/streams.h"
#include "tests/support/finite_differences.h"

namespace numsim {

inline ModelConfig TinyLanguageModel(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.layers = 2;
  config.width = 12;
  config.heads = 3;
  config.hidden = 10;
  config.vocabulary = 11;
  config.context = 6;
  config.rope_base = 20;
  config.norm_epsilon = 1e-3;
  return config;
}

// Products in float32 from float32 operands.
inline LinearPrecision Float32Products() {
  LinearPrecision precision;
  precision.all.high_precision = "fp32";
  return precision;
}

inline constexpr ModelKind kLanguageModels[] = {ModelKind::kLlama, ModelKind::kGpt};

// The models that are checked: both kinds, plain and with everything that can be switched on.
inline std::vector<ModelConfig> LanguageModelConfigs() {
  std::vector<ModelConfig> configs;
  for (const ModelKind kind : kLanguageModels) {
    ModelConfig config = TinyLanguageModel(kind);
    configs.push_back(config);
    config.qk_norm = true;
    configs.push_back(config);
    config.layer_scale = 0.5F;
    configs.push_back(config);
  }
  return configs;
}

inline std::string Describe(const ModelConfig& config) {
  return std::string(ToString(config.kind)) + (config.qk_norm ? " qk_norm" : "") +
         (config.layer_scale ? " layer_scale" : "");
}

// A model away from its initial values, which leave attention nearly uniform.
template <typename T>
std::unique_ptr<Model<T>> MakeUnsettled(const ModelConfig& config) {
  auto model = MakeModel<T>(config, Float32Products(), 1);
  Unsettle(model->parameters(), 0.3F, 2);
  return model;
}

// Random tokens, each the target of the one before it; without_target: one in four has none.
inline Batch RandomText(
    size_t examples, size_t length, size_t vocabulary, uint64_t seed, bool without_target = true) {
  Batch batch;
  batch.examples = examples;
  batch.length = length;
  for (size_t i = 0; i < examples * length; ++i) {
    const uint32_t word = RandomWord({seed, 77}, i);
    batch.tokens.push_back(static_cast<int32_t>(word % vocabulary));
  }
  for (size_t i = 0; i < examples * length; ++i) {
    const uint32_t word = RandomWord({seed, 78}, i);
    const int32_t last = static_cast<int32_t>(word % vocabulary);
    batch.targets.push_back((i + 1) % length == 0 ? last : batch.tokens[i + 1]);
    if (without_target && word >> 30 == 0) batch.targets.back() = -1;
  }
  return batch;
}

// Keeps a copy of every tensor that a pass shows, and the order of the points.
template <typename T>
class Recorder : public PassObserver<T> {
 public:
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<T> values) override {
    std::vector<T>& copy = tensors[{std::string(point), role}];
    copy.clear();
    for (size_t i = 0; i < values.rows; ++i) {
      copy.insert(copy.end(), values.Row(i), values.Row(i) + values.cols);
    }
    order[role].emplace_back(point);
  }
  const std::vector<T>& Activation(const std::string& point) const {
    return tensors.at({point, TensorRole::kActivation});
  }

  std::map<std::pair<std::string, TensorRole>, std::vector<T>> tensors;
  std::map<TensorRole, std::vector<std::string>> order;
};

// The bits of the loss and of all gradients.
template <typename T>
std::vector<T> LossAndGradients(Model<T>& model, const Pass<T>& pass, const Batch& batch) {
  std::vector<T> all{static_cast<T>(model.Forward(pass, batch).sum)};
  model.Backward(pass);
  for (const Parameter<T>& parameter : model.parameters()) {
    const std::span<const T> gradient = parameter.gradient.View().Span();
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

}  // namespace numsim
