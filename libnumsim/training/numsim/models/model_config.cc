#include "numsim/models/model_config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/models/internal/field_checks.h"
#include "numsim/models/internal/model_kinds.h"

namespace numsim {
namespace {

constexpr Keyword<ModelKind> kKinds[] = {
#define NUMSIM_MODEL_KIND(kind, name) {name, ModelKind::k##kind},
#include "numsim/models/model_kinds.inc"
#undef NUMSIM_MODEL_KIND
};

constexpr Keyword<MlpKind> kMlps[] = {{"swiglu", MlpKind::kSwiglu},
                                      {"smooth-swiglu", MlpKind::kSmoothSwiglu},
                                      {"smooth-swiglu-token", MlpKind::kSmoothSwigluToken},
                                      {"clamped-swiglu", MlpKind::kClampedSwiglu},
                                      {"gelu", MlpKind::kGelu}};

// Models compute with float32 numbers. Requires x to be finite.
void CheckFloat32(std::string_view field, double x) {
  if (!std::isfinite(static_cast<float>(x))) {
    throw KeyError::Format(
        fmt::format("model.{}", field), "{} is beyond the largest float32 number", x);
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

void CheckAttention(const AttentionPrecision& precision) {
  try {
    MakeAttentionRecipe(precision);
  } catch (const KeyError& error) {
    throw KeyError("attention." + error.key(), error.text());
  }
}

}  // namespace

ModelKind ParseModelKind(std::string_view text) { return ParseKeyword(kKinds, "model", text); }

std::string_view ToString(ModelKind kind) { return KeywordToString(kKinds, kind); }

std::string ModelKindNames() { return KeywordNames(kKinds); }

const ModelTraits& TraitsOf(ModelKind kind) { return RowOf(kind).traits; }

MlpKind ParseMlpKind(std::string_view text) { return ParseKeyword(kMlps, "mlp", text); }

std::string_view ToString(MlpKind kind) { return KeywordToString(kMlps, kind); }

std::string MlpKindNames() { return KeywordNames(kMlps); }

void CheckModelConfig(const ModelConfig& config) {
  CheckSize("layers", config.layers);
  CheckBlocks("layers", config.layers);
  CheckSize("width", config.width);
  CheckOptionalSize("hidden", config.hidden);
  CheckNumbers(config);
  CheckAttention(config.attention);
  RowOf(config.kind).check(config);
}

const LinearOptions& PrecisionOf(const LinearPrecision& precision,
                                 std::string_view layer,
                                 bool edge,
                                 LinearOptions& storage) {
  const LinearOptions* options = &precision.all;
  if (edge && precision.first_last_high) {
    storage = HighPrecisionOf(precision);
    options = &storage;
  }
  for (const LinearOverride& one : precision.overrides) {
    if (MatchesPattern(one.layers, layer)) options = &one.precision;
  }
  return *options;
}

LinearOptions HighPrecisionOf(const LinearPrecision& precision) {
  LinearOptions options;
  options.high_precision = precision.all.high_precision;
  options.high_precision_accumulate = precision.all.high_precision_accumulate;
  return options;
}

LinearPrecision WithoutHighLast(LinearPrecision precision, const ModelConfig& config) {
  if (!(precision.high_last >= 0 && precision.high_last <= 1)) {
    throw KeyError::Format("linear.high_last", "{} is not 0 to 1", precision.high_last);
  }
  std::vector<LinearOverride> overrides;
  const auto add = [&](const char* prefix, size_t blocks) {
    // A product such as 0.15 * 20 may be the number above a whole one.
    const double high = std::ceil(precision.high_last * static_cast<double>(blocks) - 1e-9);
    for (size_t i = blocks - static_cast<size_t>(high); i < blocks; ++i) {
      overrides.push_back({fmt::format("{}blocks.{}.*", prefix, i), HighPrecisionOf(precision)});
    }
  };
  if (config.kind == ModelKind::kClip) {
    add("image.", config.layers);
    add("text.", config.text_layers != 0 ? config.text_layers : config.layers);
  } else {
    add("", config.layers);
  }
  precision.overrides.insert(precision.overrides.begin(), overrides.begin(), overrides.end());
  precision.high_last = 0;
  return precision;
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
