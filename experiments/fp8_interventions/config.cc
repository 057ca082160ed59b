// The trainings of `fp8-interventions`: interventions, precisions, configurations.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/linear_variant.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments::fp8_interventions {
namespace {

// Names of OCP, which the tables of this experiment use for e3m2fn and e2m3fn.
constexpr std::string_view kShortNames[] = {"e3m2", "e2m3"};

constexpr const char *kNoIntervention = "none", *kNoStress = "unstressed";

struct Part {
  std::string_view name;
  bool Intervention::*flag;
};
constexpr Part kParts[] = {{"clip", &Intervention::clip},
                           {"qk-norm", &Intervention::qk_norm},
                           {"layer-scale", &Intervention::layer_scale}};

std::string CanonicalFormat(const std::string& text) { return ParseFormat(text).name; }

std::string Label(const std::string& format) {
  for (const std::string_view name : kShortNames) {
    if (CanonicalFormat(std::string(name)) == format) return std::string(name);
  }
  return format;
}

// Until November 2026, e3m3 and e4m2 were formats without infinity and NaN in this experiment alone;
// e3m2 and e2m3 were those of OCP.
std::string FromFormerName(std::string_view word, bool has_keys) {
  if (has_keys) return numsim::FromFormerNames(word);
  if (word == "e3m3" || word == "e4m2") return std::string(word) + ":inf=none,nan=none";
  const bool unchanged =
      std::find(std::begin(kShortNames), std::end(kShortNames), word) != std::end(kShortNames);
  return unchanged ? std::string(word) : numsim::FromFormerNames(word);
}

LinearOptions LinearOf(const Precision& precision) {
  LinearOptions options;
  options.high_precision = kBaseline.forward;
  if (precision == kBaseline) return options;
  options.kind = "tensor-wise";
  options.format = precision.forward;
  options.gradient_format = precision.gradient;
  return options;
}

void SetData(const Settings& settings, TrainConfig& config) {
  const std::string& model = settings.Get("model");
  if (model == "llama") {
    config.model.kind = ModelKind::kLlama;
    ReadText(settings, config.data);
    return;
  }
  ReadCaptions(settings, config.data);
  if (model == "clip") {
    config.model.kind = ModelKind::kClip;
  } else if (model == "vit") {
    if (!settings.Get("captions").empty()) throw Error("--captions: the model vit has none");
    config.model.kind = ModelKind::kVit;
    config.data.kind = DataKind::kGeneratedImages;
  } else {
    throw Error::Format("--model '{}': expected clip, vit or llama", model);
  }
}

void SetStress(const Settings& settings, StressConfig& stress) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  stress.input_tail = settings.GetDouble("input-tail", 0, kLargest);
  if (settings.Get("plant-point").empty()) return;
  stress.point = settings.Get("plant-point");
  stress.channel = static_cast<size_t>(settings.GetInteger("plant-channel", 0, 1 << 16));
  stress.value = settings.GetDouble("plant-value", -kLargest, kLargest);
}

}  // namespace

std::string StressOf(const Settings& settings) {
  std::string text;
  if (!settings.Get("plant-point").empty()) {
    text = fmt::format("not as in the paper: {} is added to channel {} at {}",
                       settings.Get("plant-value"),
                       settings.Get("plant-channel"),
                       settings.Get("plant-point"));
  }
  if (settings.GetDouble("input-tail", 0, std::numeric_limits<double>::max()) != 0) {
    text += fmt::format("{}pixels are stretched by {}",
                        text.empty() ? "not as in the paper: " : ", ",
                        settings.Get("input-tail"));
  }
  return text;
}

std::string FromFormerNames(const std::string& text) {
  return ReplaceFormatNames(text, FromFormerName);
}

std::string Intervention::Text() const {
  if (unstressed) return kNoStress;
  std::string text;
  for (const Part& part : kParts) {
    if (!(this->*part.flag)) continue;
    if (!text.empty()) text += '+';
    text += part.name;
  }
  return text.empty() ? kNoIntervention : text;
}

Intervention ParseIntervention(const std::string& text) {
  Intervention intervention;
  if (text == kNoIntervention) return intervention;
  if (text == kNoStress) return kUnstressed;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const auto part = std::find_if(
        std::begin(kParts), std::end(kParts), [&](const Part& p) { return p.name == name; });
    if (part == std::end(kParts)) {
      throw Error::Format(
          "--interventions: '{}' in '{}' is not clip, qk-norm or layer-scale; none stands alone",
          name,
          text);
    }
    intervention.*(part->flag) = true;
    begin = end + 1;
  }
  return intervention;
}

std::vector<Intervention> InterventionsOf(const Settings& settings) {
  std::vector<Intervention> interventions = {Intervention{}};
  for (const std::string& text : settings.GetList("interventions")) {
    const Intervention intervention = ParseIntervention(text);
    if (intervention.unstressed) {
      throw Error("--interventions: unstressed is trained by itself where there is a stress");
    }
    if (std::find(interventions.begin(), interventions.end(), intervention) ==
        interventions.end()) {
      interventions.push_back(intervention);
    }
  }
  return interventions;
}

std::string Precision::Text() const {
  return forward == gradient ? Label(forward) : Label(forward) + "/" + Label(gradient);
}

Precision ParsePrecision(const std::string& text) {
  try {
    const VariantFormats formats = SplitFormats(text);
    Precision precision;
    precision.forward = CanonicalFormat(formats.format);
    precision.gradient = formats.gradient_format.empty() ? precision.forward
                                                         : CanonicalFormat(formats.gradient_format);
    MakeLinearRecipe(LinearOf(precision));
    return precision;
  } catch (const Error& error) {
    throw Error::Format("--formats: '{}' is not FORWARD[/GRADIENT]: {}", text, error.what());
  }
}

std::vector<Precision> PrecisionsOf(const Settings& settings) {
  std::vector<Precision> precisions = {kBaseline};
  for (const std::string& text : SplitFormatList(settings.Get("formats"))) {
    const Precision precision = ParsePrecision(text);
    if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end()) {
      precisions.push_back(precision);
    }
  }
  return precisions;
}

bool IsPapers(const Precision& precision) {
  return precision == Precision{"e4m3fn", "e5m2"} || precision == Precision{"bnb-e4m3", "bnb-e5m2"};
}

TrainConfig ConfigOf(const Settings& settings,
                     const Intervention& intervention,
                     const Precision& precision,
                     uint64_t seed) {
  TrainConfig config;
  ReadTraining(settings, seed, config);
  SetData(settings, config);
  SetStress(settings, config.stress);
  if (intervention.unstressed) config.stress = {};
  config.model.text_layers = static_cast<size_t>(settings.GetInteger("text-layers", 0, 128));
  config.model.patch = static_cast<size_t>(settings.GetInteger("patch", 1, 1 << 16));
  ReadPatchDropout(settings, config.model);
  config.model.scaled_branches = settings.GetYes("scaled-branches");
  config.model.qk_norm = intervention.qk_norm;
  if (intervention.layer_scale) config.model.layer_scale = 0.0f;
  const double clip_norm = settings.GetDouble("clip-norm", 1e-9, 1e9);
  config.optimizer.clip_norm = intervention.clip ? clip_norm : 0;
  config.linear.all = LinearOf(precision);
  config.train.diverged_above = settings.GetDouble("diverged-above", 0, 1e9);
  config.telemetry.every = std::numeric_limits<uint64_t>::max();
  const auto snapshots = static_cast<uint64_t>(settings.GetInteger("snapshots", 1, 1 << 20));
  config.telemetry.tensors_every = std::max<uint64_t>(1, config.train.steps / snapshots);
  return config;
}

}  // namespace numsim::experiments::fp8_interventions
