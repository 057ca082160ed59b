#include "experiments/runner/model_size.h"

#include <algorithm>
#include <cstddef>

namespace numsim::experiments {
namespace {

constexpr size_t kBytes = 256, kCaptionTokens = 259;

double Product(size_t a, size_t b) { return static_cast<double>(a) * static_cast<double>(b); }

size_t Or(size_t value, size_t otherwise) { return value != 0 ? value : otherwise; }

// Returns the model with what generated data decide.
ModelConfig ModelOf(const TrainConfig& config) {
  ModelConfig model = config.model;
  const DataConfig& data = config.data;
  if (data.kind == DataKind::kGeneratedShapes) model.image = data.image;
  if (data.kind == DataKind::kGeneratedImages) {
    model.image = data.image;
    model.channels = 1;
    model.classes = data.classes;
  }
  if (data.kind == DataKind::kGaussian) model.inputs = data.features;
  return model;
}

size_t PatchesOf(const ModelConfig& model) {
  const size_t side = model.image / model.patch;
  return side * side;
}

// The hidden layer of the MLP: ModelConfig::hidden.
size_t HiddenOf(const ModelConfig& model) {
  constexpr size_t kMultiple = 32;
  const bool llama = model.kind == ModelKind::kLlama;
  const size_t wide = (8 * model.width + 3 * kMultiple - 1) / (3 * kMultiple) * kMultiple;
  return Or(model.hidden, llama ? wide : 4 * model.width);
}

// The shape of a stack of blocks.
struct Stack {
  size_t layers, width, heads, hidden;
};

double BlocksOf(const ModelConfig& model, const Stack& stack) {
  const bool llama = model.kind == ModelKind::kLlama;
  const size_t per_norm = llama ? 1 : 2;  // gains; biases, too
  const bool gated = llama && model.mlp != MlpKind::kGelu;
  double block = 4 * Product(stack.width, stack.width);
  block += Product(stack.width, stack.hidden) * (gated ? 3 : 2);
  block += 2 * Product(per_norm, stack.width);
  if (!llama) block += Product(5, stack.width) + static_cast<double>(stack.hidden);  // biases
  if (model.qk_norm) block += 2 * Product(per_norm, stack.width / stack.heads);
  if (model.layer_scale) block += Product(2, stack.width);
  return static_cast<double>(stack.layers) * block;
}

ParameterCount OfLanguageModel(const ModelConfig& model, size_t vocabulary) {
  const bool llama = model.kind == ModelKind::kLlama;
  ParameterCount count;
  count.blocks = BlocksOf(model, {model.layers, model.width, model.heads, HiddenOf(model)}) +
                 Product(llama ? 1 : 2, model.width);
  count.all = count.blocks + 2 * Product(vocabulary, model.width);
  if (!llama) count.all += Product(model.context, model.width);
  return count;
}

// An image tower with its class token, positions and last norm.
ParameterCount OfImages(const ModelConfig& model) {
  const bool clip = model.kind == ModelKind::kClip;
  const size_t patch = model.patch * model.patch * model.channels;
  ParameterCount count;
  count.blocks = BlocksOf(model, {model.layers, model.width, model.heads, HiddenOf(model)}) +
                 Product(patch + (clip ? 0 : 1), model.width) +  // ViT: patches with a bias
                 Product(clip ? 4 : 2, model.width);             // norms
  count.all = count.blocks + Product(PatchesOf(model) + 2, model.width);
  return count;
}

ParameterCount OfClip(const ModelConfig& model, size_t vocabulary) {
  const size_t width = Or(model.text_width, model.width);
  const Stack text{Or(model.text_layers, model.layers),
                   width,
                   Or(model.text_heads, model.heads),
                   std::max<size_t>(1, HiddenOf(model) * width / model.width)};
  ParameterCount count = OfImages(model);
  const double more = BlocksOf(model, text) + Product(2, width) +
                      Product(model.width + width, Or(model.embedding, model.width)) + 1;
  count.blocks += more;
  count.all += more + Product(vocabulary + model.context, width);
  return count;
}

double OfStudent(const ModelConfig& model) {
  const size_t hidden = HiddenOf(model);
  double count = Product(model.layers, 2 * model.width) +
                 static_cast<double>(model.layers) * 2 * Product(model.width, hidden);
  if (model.inputs != model.width) count += 2 * Product(model.inputs, model.width);
  return count;
}

}  // namespace

size_t VocabularyOf(const TrainConfig& config) {
  if (config.model.kind == ModelKind::kClip) return kCaptionTokens;
  const bool many =
      config.data.kind == DataKind::kZipf || config.data.tokenizer == TokenizerKind::kBpe;
  return many ? config.data.vocabulary : kBytes;
}

size_t PatchesOf(const TrainConfig& config) { return PatchesOf(ModelOf(config)); }

ParameterCount CountParameters(const TrainConfig& config) {
  const ModelConfig model = ModelOf(config);
  switch (model.kind) {
    case ModelKind::kClip:
      return OfClip(model, VocabularyOf(config));
    case ModelKind::kVit: {
      ParameterCount count = OfImages(model);
      const double head = Product(model.width + 1, model.classes);
      return {count.all + head, count.blocks + head};
    }
    case ModelKind::kMlp: {
      const double count = OfStudent(model);
      return {count, count};
    }
    default:
      return OfLanguageModel(model, VocabularyOf(config));
  }
}

double TokensOrPatchesPerStep(const TrainConfig& config) {
  const size_t batch = config.train.batch;
  if (config.model.kind == ModelKind::kMlp) return static_cast<double>(batch);
  if (TraitsOf(config.model.kind).has_tokens) return Product(batch, config.model.context);
  return Product(batch, PatchesOf(config));
}

double TokensOrPatches(const TrainConfig& config) {
  return TokensOrPatchesPerStep(config) * static_cast<double>(config.train.steps);
}

}  // namespace numsim::experiments
