// The trainings of `switchback-accuracy`: variants, configurations, inner dimensions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/shared/linear_variant.h"
#include "experiments/shared/training.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/base/error.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

// All linear layers of both models except the first and last ones.
constexpr const char* kBlockPattern = "*blocks.*";
constexpr std::string_view kAllSuffix = "+all";

// Returns the variant with its formats as the recipe resolves them.
Variant Resolved(const LinearOptions& options, const std::string& layers = kBlockLayers) {
  const LinearRecipe recipe = MakeLinearRecipe(options);
  return {options.kind,
          recipe[LinearGemm::kForward].a.format.name,
          recipe[LinearGemm::kInputGradient].a.format.name,
          layers};
}

// Replaces a kind that saves codes of X for backward by the kind that computes the same Y and dX
// but saves X itself.
std::string KindThatKeepsInputs(const std::string& kind) {
  if (kind == "switchback-m") return "switchback";
  if (kind == "te-hybrid") return "tensor-wise";
  return kind;
}

// Returns options that compute Y and dX as `options` do, and dW from operands in fp32.
LinearOptions ExactWeightGradient(LinearOptions options) {
  const Variant variant = Resolved(options);
  if (variant.kind == kBaseline.kind) {
    // Formats of 16 bits are not scaled, so this is the same cast as in `standard`.
    options.kind = "switchback";
    options.format = options.gradient_format = variant.format;
  } else {
    options.kind = KindThatKeepsInputs(variant.kind);
    options.high_operands.Insert(LinearOperand::kWeightGradientG);
    options.high_operands.Insert(LinearOperand::kWeightGradientX);
  }
  options.high_precision = "fp32";
  return options;
}

void SetData(const Settings& settings, ModelKind model, DataConfig& data) {
  const bool clip = model == ModelKind::kClip;
  const std::string& path = settings.Get(clip ? "captions" : "text");
  if (!path.empty()) {
    data.kind = clip ? DataKind::kCaptions : DataKind::kText;
    data.path = path;
  } else {
    data.kind = clip ? DataKind::kGeneratedShapes : DataKind::kGeneratedText;
  }
  data.size = static_cast<size_t>(
      settings.GetInteger(clip ? "shapes-size" : "text-size", 1, int64_t{1} << 32));
  if (clip) data.image = static_cast<size_t>(settings.GetInteger("image", 1, 1 << 16));
}

}  // namespace

LinearOptions Variant::Options() const {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = kBaseline.format;
  if (kind == kBaseline.kind) return options;
  options.format = format;
  options.gradient_format = gradient_format;
  return options;
}

std::string Variant::Text() const {
  if (kind == kBaseline.kind) return kind;
  LinearOptions options = Options();
  options.gradient_format.clear();
  const bool plain = format == gradient_format && Resolved(options, layers) == *this;
  return kind + ":" + format + (plain ? "" : "/" + gradient_format) +
         (layers == kAllLayers ? std::string(kAllSuffix) : "");
}

Variant ParseVariant(const std::string& text) {
  const bool all = text.ends_with(kAllSuffix);
  const size_t length = text.size() - (all ? kAllSuffix.size() : 0);
  LinearOptions options = ParseLinearVariant("variants", std::string_view(text).substr(0, length));
  options.high_precision = kBaseline.format;
  // In `standard` nothing is quantised in either case.
  return Resolved(options, all && options.kind != kBaseline.kind ? kAllLayers : kBlockLayers);
}

std::vector<Variant> VariantsOf(const Settings& settings) {
  std::vector<Variant> variants = {kBaseline};
  for (const std::string& text : SplitFormatList(settings.Get("variants"))) {
    const Variant variant = ParseVariant(text);
    if (std::find(variants.begin(), variants.end(), variant) == variants.end()) {
      variants.push_back(variant);
    }
  }
  return variants;
}

std::string Precision(const Variant& variant) {
  const FormatSpec spec = ParseFormat(variant.format).spec;
  if (variant.format == "int8") return "int8";
  return spec.Bits() == 8 ? "fp8" : variant.format;
}

TrainConfig ConfigOf(const Settings& settings, const Training& training, uint64_t seed) {
  const bool clip = training.model == ModelKind::kClip;
  TrainConfig config;
  ReadTraining(settings, seed, config);
  config.model.kind = training.model;
  SetSize(training.size, config.model);
  config.model.patch = static_cast<size_t>(settings.GetInteger("patch", 1, 1 << 16));
  config.train.batch = training.batch;
  config.schedule.peak = settings.GetDouble(clip ? "lr-clip" : "lr-llama", 1e-12, 100);
  ReadPatchDropout(settings, config.model);
  config.linear.all = training.variant.Options();
  config.linear.first_last_high = training.variant.layers == kBlockLayers;
  SetData(settings, training.model, config.data);
  config.telemetry.every = std::numeric_limits<uint64_t>::max();
  config.telemetry.tensors_every = 0;
  return config;
}

size_t InnerDimension(const TrainConfig& config, std::string_view layer) {
  const ModelConfig& model = config.model;
  const size_t batch = config.train.batch;
  if (model.kind != ModelKind::kClip || layer.starts_with("text.blocks.")) {
    return batch * model.context;
  }
  const size_t patches = (model.image / model.patch) * (model.image / model.patch);
  if (layer == "image.patches") return batch * patches;
  return layer.starts_with("image.blocks.") ? batch * (patches + 1) : batch;
}

size_t Tokens(const TrainConfig& config) {
  return InnerDimension(config,
                        config.model.kind == ModelKind::kClip ? "image.blocks.0" : "blocks.0");
}

bool IsShadowStep(const Settings& settings, uint64_t steps) {
  const auto count = static_cast<uint64_t>(settings.GetInteger("shadow-steps", 0, kMostSteps));
  const auto warmup = static_cast<uint64_t>(settings.GetInteger("warmup", 0, kMostSteps));
  const auto last = static_cast<uint64_t>(settings.GetInteger("steps", 1, kMostSteps));
  for (uint64_t i = 0; i < count; ++i) {
    if (steps == warmup + (last - warmup) * i / count) return true;
  }
  return false;
}

LinearPrecision WithExactWeightGradient(const LinearPrecision& precision) {
  const LinearOptions blocks = ExactWeightGradient(precision.all);
  LinearPrecision exact;
  exact.all = blocks;
  if (precision.first_last_high) {
    exact.all = ExactWeightGradient(kBaseline.Options());
    exact.overrides = {{kBlockPattern, blocks}};
  }
  return exact;
}

}  // namespace numsim::experiments::switchback_accuracy
