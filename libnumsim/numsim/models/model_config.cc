#include "numsim/models/model_config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<ModelKind> kKinds[] = {{"llama", ModelKind::kLlama},
                                         {"gpt", ModelKind::kGpt},
                                         {"vit", ModelKind::kVit},
                                         {"clip", ModelKind::kClip},
                                         {"mlp", ModelKind::kMlp}};

constexpr Keyword<MlpKind> kMlps[] = {{"swiglu", MlpKind::kSwiglu},
                                      {"smooth-swiglu", MlpKind::kSmoothSwiglu},
                                      {"smooth-swiglu-token", MlpKind::kSmoothSwigluToken},
                                      {"clamped-swiglu", MlpKind::kClampedSwiglu},
                                      {"gelu", MlpKind::kGelu}};

// Sizes are multiplied; with larger ones a product might not fit 64 bits. Tokens are int32.
constexpr size_t kLargest = size_t{1} << 30;

// The most blocks of a model, over all towers: its linear layers then have numbers below
// kMaxLinearLayers, at four per block and a few outside.
constexpr size_t kMostBlocks = 1000;

std::string KeyOf(std::string_view field) { return fmt::format("model.{}", field); }

void CheckSize(std::string_view field, size_t size) {
  if (size == 0) throw KeyError::Format(KeyOf(field), "0");
  if (size > kLargest) throw KeyError::Format(KeyOf(field), "{} is above {}", size, kLargest);
}

// As CheckSize, but 0 is allowed and stands for a default.
void CheckOptionalSize(std::string_view field, size_t size) {
  if (size != 0) CheckSize(field, size);
}

void CheckDivides(std::string_view field, size_t part, std::string_view whole_name, size_t whole) {
  if (whole % part != 0) {
    throw KeyError::Format(
        KeyOf(field), "{} does not divide {} = {}", part, KeyOf(whole_name), whole);
  }
}

void CheckBlocks(std::string_view field, size_t blocks) {
  if (blocks > kMostBlocks) {
    throw KeyError::Format(KeyOf(field),
                           "{} blocks are more than {}, the most that all towers may have together",
                           blocks,
                           kMostBlocks);
  }
}

void CheckHeads(const ModelConfig& config) {
  CheckSize("heads", config.heads);
  CheckDivides("heads", config.heads, "width", config.width);
  const size_t head_dim = config.width / config.heads;
  if (config.kind == ModelKind::kLlama && head_dim % 2 != 0) {
    throw KeyError::Format(
        "model.heads", "rotary positions need an even width of a head, not {}", head_dim);
  }
}

void CheckImage(const ModelConfig& config) {
  if (!(config.patch_dropout >= 0 && config.patch_dropout < 1)) {
    throw KeyError::Format("model.patch_dropout", "{} is not in [0, 1)", config.patch_dropout);
  }
  CheckSize("image", config.image);
  CheckSize("channels", config.channels);
  CheckSize("patch", config.patch);
  CheckDivides("patch", config.patch, "image", config.image);
}

void CheckTokens(const ModelConfig& config) {
  CheckSize("vocabulary", config.vocabulary);
  CheckSize("context", config.context);
}

void CheckText(const ModelConfig& config) {
  CheckOptionalSize("text_layers", config.text_layers);
  const size_t text_layers = config.text_layers != 0 ? config.text_layers : config.layers;
  CheckBlocks(config.text_layers != 0 ? "text_layers" : "layers", config.layers + text_layers);
  CheckOptionalSize("text_width", config.text_width);
  CheckOptionalSize("text_heads", config.text_heads);
  CheckOptionalSize("embedding", config.embedding);
  const size_t width = config.text_width != 0 ? config.text_width : config.width;
  const size_t heads = config.text_heads != 0 ? config.text_heads : config.heads;
  if (width % heads != 0) {
    throw KeyError::Format(
        "model.text_heads", "{} heads do not divide a text width of {}", heads, width);
  }
}

// Models compute with float32 numbers. Requires x to be finite.
void CheckFloat32(std::string_view field, double x) {
  if (!std::isfinite(static_cast<float>(x))) {
    throw KeyError::Format(KeyOf(field), "{} is beyond the largest float32 number", x);
  }
}

void CheckNumbers(const ModelConfig& config) {
  if (!(config.norm_epsilon > 0 && std::isfinite(config.norm_epsilon))) {
    throw KeyError::Format(
        "model.norm_epsilon", "{} is not a positive number", config.norm_epsilon);
  }
  if (config.norm_epsilon < static_cast<double>(std::numeric_limits<float>::min())) {
    throw KeyError::Format(
        "model.norm_epsilon", "{} is below the normal numbers of float32", config.norm_epsilon);
  }
  if (!(config.rope_base > 1 && std::isfinite(config.rope_base))) {
    throw KeyError::Format("model.rope_base", "{} is not a number above 1", config.rope_base);
  }
  if (!(config.initial_deviation >= 0 && std::isfinite(config.initial_deviation))) {
    throw KeyError::Format(
        "model.initial_deviation", "{} is not 0 or a positive number", config.initial_deviation);
  }
  CheckFloat32("norm_epsilon", config.norm_epsilon);
  CheckFloat32("rope_base", config.rope_base);
  CheckFloat32("initial_deviation", config.initial_deviation);
  if (config.layer_scale.has_value() && !std::isfinite(*config.layer_scale)) {
    throw KeyError::Format(
        "model.layer_scale", "{} is not a finite float32 number", *config.layer_scale);
  }
}

}  // namespace

ModelKind ParseModelKind(std::string_view text) { return ParseKeyword(kKinds, "model", text); }

std::string_view ToString(ModelKind kind) { return KeywordToString(kKinds, kind); }

MlpKind ParseMlpKind(std::string_view text) { return ParseKeyword(kMlps, "mlp", text); }

std::string_view ToString(MlpKind kind) { return KeywordToString(kMlps, kind); }

void CheckModelConfig(const ModelConfig& config) {
  CheckSize("layers", config.layers);
  CheckBlocks("layers", config.layers);
  CheckSize("width", config.width);
  CheckOptionalSize("hidden", config.hidden);
  CheckNumbers(config);
  if (config.kind == ModelKind::kMlp) {
    CheckSize("inputs", config.inputs);
    return;
  }
  CheckHeads(config);
  if (config.kind == ModelKind::kVit || config.kind == ModelKind::kClip) {
    CheckImage(config);
  }
  if (config.kind != ModelKind::kVit) CheckTokens(config);
  if (config.kind == ModelKind::kVit) CheckSize("classes", config.classes);
  if (config.kind == ModelKind::kClip) CheckText(config);
}

const LinearOptions& PrecisionOf(const LinearPrecision& precision,
                                 std::string_view layer,
                                 bool edge,
                                 LinearOptions& storage) {
  const LinearOptions* options = &precision.all;
  if (edge && precision.first_last_high) {
    storage = {};
    storage.high_precision = precision.all.high_precision;
    storage.high_precision_accumulate = precision.all.high_precision_accumulate;
    options = &storage;
  }
  for (const LinearOverride& one : precision.overrides) {
    if (MatchesPattern(one.layers, layer)) options = &one.precision;
  }
  return *options;
}

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  // Matches greedily from the left. On a mismatch, the last '*' takes one more character.
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0, t = 0, star = kNone, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace numsim
