// Small models of images and captions, and batches for them.
#pragma once

#include <vector>

#include "tests/models/model_checks.h"

namespace numsim {

// Four patches of 3 x 3.
inline ModelConfig TinyImageModel(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.layers = 2;
  config.width = 12;
  config.heads = 3;
  config.hidden = 10;
  config.image = 6;
  config.channels = 2;
  config.patch = 3;
  config.classes = 5;
  config.norm_epsilon = 1e-3;
  config.vocabulary = 11;
  config.context = 6;
  config.text_layers = 1;
  config.text_width = 8;
  config.text_heads = 2;
  config.embedding = 7;
  return config;
}

// Plain, and with everything that can be switched on.
inline std::vector<ModelConfig> ImageModelConfigs(ModelKind kind) {
  std::vector<ModelConfig> configs(2, TinyImageModel(kind));
  configs[1].qk_norm = true;
  configs[1].layer_scale = 0.5F;
  return configs;
}

// Images with labels, and captions of the context's length; every concept is another one.
inline Batch RandomImages(const ModelConfig& config, size_t examples, uint64_t seed) {
  Batch batch = RandomText(examples, config.context, config.vocabulary, seed);
  batch.values = NormalDraws(examples * config.image * config.image * config.channels, seed);
  batch.targets.clear();
  for (size_t i = 0; i < examples; ++i) {
    batch.targets.push_back(static_cast<int32_t>(RandomWord({seed, 5}, i) % config.classes));
    batch.ends.push_back(static_cast<int32_t>(2 + i % (config.context - 2)));
    batch.concepts.push_back(static_cast<int32_t>(100 + i));
  }
  return batch;
}

}  // namespace numsim
