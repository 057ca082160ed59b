// Definition of the experiment `feature-statistics`: options, tensors, trials.
#include "experiments/feature_statistics/feature_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "experiments/runner/settings.h"
#include "experiments/shared/linear_variant.h"
#include "experiments/shared/paper_training.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace feature_statistics {
namespace {

constexpr std::string_view kDescription =
    "Trains CLIP (or a Llama, or a ViT), without layer-scale and with one that starts at 0, and\n"
    "measures tensors of each block: mean and largest magnitude of the output of the block (the\n"
    "residual stream after it) and of the gradients of the MLP's weights, as in Figure 11, and of\n"
    "the six operands of the MLP's two linear layers: inputs X, weights W and output gradients G,\n"
    "which tensor-wise quantisation divides by their maximum.\n"
    "features.csv has a record every --every steps. maxima.csv uses every step: it tells how\n"
    "well the largest (max) or the mean (mean) of the last --histories maxima predicts the\n"
    "maximum of a step, as delayed scaling assumes. A step overruns its forecast, and saturates,\n"
    "if its maximum is above the forecast. It is clipped if its maximum is above 16/15 of the\n"
    "forecast: the largest element then loses more by saturation than by rounding to E4M3. Steps\n"
    "whose history is all zeros are left out, such as gradients of the first step with a zero\n"
    "layer-scale.\n"
    "smoothness.csv combines these results over the blocks of a tower and over seeds. growth.csv\n"
    "has magnitudes at the first and last record, depth.csv those of the last block.";

constexpr BlockTensor kBlockTensors[] = {
    {"output", "", "", "activation", false},
    {"mlp-first-weight-gradient",
     ".mlp.up.weight",
     ".mlp.gate_up.weight",
     "weight-gradient",
     false},
    {"mlp-second-weight-gradient",
     ".mlp.down.weight",
     ".mlp.down.weight",
     "weight-gradient",
     false},
    {"output-gradient", "", "", "gradient", false},
    {"mlp-first-x", ".mlp.norm", ".mlp.norm", "activation", true},
    {"mlp-second-x", ".mlp.hidden", ".mlp.hidden", "activation", true},
    {"mlp-first-w", ".mlp.up.weight", ".mlp.gate_up.weight", "weight", true},
    {"mlp-second-w", ".mlp.down.weight", ".mlp.down.weight", "weight", true},
    {"mlp-first-g", ".mlp.up", ".mlp.gate_up", "gradient", true},
    {"mlp-second-g", ".mlp.down", ".mlp.down", "gradient", true},
};

std::vector<Option> DataOptions() {
  return {
      // clang-format off
      {.name = "captions",  .quick = "",        .paper = "",         .help = "clip: folder of images with captions; empty: generated shapes"},
      {.name = "shapes",    .quick = "2048",    .paper = "1048576",  .help = "clip, vit: number of generated images", .small = "8192"},
      {.name = "image",     .quick = "32",      .paper = "64",       .help = "clip, vit: width and height of generated images in pixels, 16 to 64"},
      {.name = "patch",     .quick = "8",       .paper = "4",        .help = "clip, vit: width and height of a patch in pixels"},
      {.name = "text",      .quick = "",        .paper = "",         .help = "llama: UTF-8 file to train on; empty: generated text"},
      {.name = "text-size", .quick = "1048576", .paper = "67108864", .help = "llama: bytes of generated text", .small = "4194304"},
      {.name = "context",   .quick = "64",      .paper = "2048",     .help = "llama: bytes per sequence", .small = "128"},
      // clang-format on
  };
}

std::vector<Option> TrainingOptions() {
  return {
      // clang-format off
      {.name = "batch",        .quick = "32",   .paper = "16384", .help = "examples per step", .small = "64"},
      {.name = "steps",        .quick = "150",  .paper = "20000", .help = "training steps", .small = "400"},
      {.name = "lr",           .quick = "2e-3", .paper = "2e-3",  .help = "peak learning rate"},
      {.name = "warmup",       .quick = "30",   .paper = "5000",  .help = "steps of linear warm-up, below --steps", .small = "50", .part_of = "steps"},
      {.name = "final-lr",     .quick = "0",    .paper = "0",     .help = "learning rate at the end, over the peak: 0 to 1", .before = "0.1"},
      {.name = "optimizer",    .quick = "stable-adamw", .paper = "stable-adamw", .help = "optimiser: stable-adamw, adamw or another of numsim train", .before = "adamw"},
      {.name = "epsilon",      .quick = "1e-6", .paper = "1e-6",  .help = "epsilon of the optimiser", .before = "1e-6"},
      {.name = "beta2",        .quick = "0.99", .paper = "0.99",  .help = "decay of the optimiser's v"},
      {.name = "weight-decay", .quick = "0.2",  .paper = "0.2",   .help = "weight decay of matrices"},
      {.name = "clip",         .quick = "0",    .paper = "0",     .help = "largest norm of gradients; 0 disables clipping"},
      {.name = "patch-dropout", .quick = "0.5", .paper = "0.5",   .help = "clip: share of the patches that a training step leaves out, 0 to below 1", .before = "0"},
      {.name = "storage",      .quick = "bf16", .paper = "bf16",  .help = "format of activations and gradients between operations; fp32: not rounded", .before = "fp32"},
      // clang-format on
  };
}

std::vector<Option> Options() {
  std::vector<Option> options = {
      // clang-format off
      {.name = "model",        .quick = "clip",      .paper = "clip",     .help = "model to train: clip, llama or vit"},
      {.name = "sizes",        .quick = "4x64",      .paper = "12x768,24x1024,32x1280", .help = "sizes LAYERSxWIDTH of the model (clip: of each tower), separated by commas",
       .small = "4x64,12x64"},
      {.name = "layer-scales", .quick = "none,0",    .paper = "none,0",   .help = "initial gains of the branches, separated by commas; none: no layer-scale"},
      {.name = "products",     .quick = "standard",  .paper = "standard",
       .help = "kind of the linear layers: KIND[:FORMAT[/GRADIENT_FORMAT]], e.g. tensor-wise:e4m3fn/e5m2; standard is bf16"},
      {.name = "every",        .quick = "5",         .paper = "20",       .help = "steps between records of features.csv"},
      {.name = "histories",    .quick = "1,4,16,64", .paper = "1,4,16,64,256,1024", .help = "numbers of previous steps whose maxima predict the next, separated by commas; 1 is always included",
       .small = "1,4,16,64,256"},
      // clang-format on
  };
  for (const std::vector<Option>& more : {DataOptions(), TrainingOptions()}) {
    options.insert(options.end(), more.begin(), more.end());
  }
  options.push_back(KeysOption());
  return options;
}

std::vector<PaperSetting> PaperSettings() {
  const std::vector<PaperSetting> others = {
      {"batch",
       "16384",
       "Section 2.2.2",
       "The maxima of smaller batches vary more from step to step."},
  };
  return PaperTraining(Paper::kSwitchBack, Options(), others);
}

// Returns the initial gain of one value of --layer-scales; nothing for none.
std::optional<double> ReadLayerScale(const std::string& text) {
  if (text == kNoLayerScale) return std::nullopt;
  Settings one;
  one.options["layer-scales"] = text;
  return one.GetDouble("layer-scales", 0, 100);
}

void ReadData(const Settings& settings, TrainConfig& config) {
  const std::string& model = settings.Get("model");
  if (model == "clip") {
    config.model.kind = ModelKind::kClip;
    ReadCaptions(settings, config.data);
  } else if (model == "vit") {
    config.model.kind = ModelKind::kVit;
    config.data.kind = DataKind::kGeneratedImages;
    config.data.size = static_cast<size_t>(settings.GetInteger("shapes", 64, 1 << 24));
    config.data.image = static_cast<size_t>(settings.GetInteger("image", 16, 64));
  } else if (model == "llama") {
    config.model.kind = ModelKind::kLlama;
    ReadTextData(settings, config.data);
  } else {
    throw Error::Format("--model '{}' is not one of clip, llama, vit", model);
  }
}

std::vector<Trial> Trials(const Settings& settings) {
  settings.GetInteger("every", 1, std::numeric_limits<int32_t>::max());
  HistoriesOf(settings);
  const int64_t steps = settings.GetInteger("steps", 2, std::numeric_limits<int32_t>::max());
  settings.GetInteger("warmup", 0, steps - 1);
  std::vector<Trial> trials;
  for (const Training& training : TrainingsOf(settings)) {
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      if (trials.empty()) CheckTraining(settings, ConfigOf(settings, training, seed));
      const auto layers = static_cast<double>(training.size.layers);
      const auto width = static_cast<double>(training.size.width);
      trials.push_back(
          {.label = fmt::format("{} seed={}", training.Text(), seed),
           .seed = seed,
           .parameters = {{"size", Text(training.size)}, {"layer_scale", training.layer_scale}},
           .cost = layers * width * width});
    }
  }
  return trials;
}

}  // namespace

std::span<const BlockTensor> BlockTensors() { return kBlockTensors; }

std::string Training::Text() const {
  return fmt::format("{} layer-scale={}", experiments::Text(size), layer_scale);
}

std::vector<Training> TrainingsOf(const Settings& settings) {
  std::vector<std::string> scales, sizes;
  for (const std::string& text : settings.GetList("layer-scales")) {
    const std::optional<double> gain = ReadLayerScale(text);
    scales.push_back(gain ? FormatCell(*gain) : std::string(kNoLayerScale));
  }
  CheckDistinct("layer-scales", scales);
  std::vector<Training> trainings;
  for (const ModelSize& size : ReadSizes(settings, "sizes")) {
    sizes.push_back(Text(size));
    for (const std::string& scale : scales) trainings.push_back({size, scale});
  }
  CheckDistinct("sizes", sizes);
  return trainings;
}

std::vector<size_t> HistoriesOf(const Settings& settings) {
  std::vector<size_t> histories = {1};
  for (const int64_t history : settings.GetIntegers("histories", 1, 1 << 20)) {
    histories.push_back(static_cast<size_t>(history));
  }
  std::sort(histories.begin(), histories.end());
  histories.erase(std::unique(histories.begin(), histories.end()), histories.end());
  return histories;
}

TrainConfig ConfigOf(const Settings& settings, const Training& training, uint64_t seed) {
  TrainConfig config;
  ReadData(settings, config);
  SetSize(training.size, config.model);
  config.model.patch = static_cast<size_t>(settings.GetInteger("patch", 1, 1 << 10));
  const std::optional<double> gain = ReadLayerScale(training.layer_scale);
  if (gain) config.model.layer_scale = static_cast<float>(*gain);
  config.linear.all = ParseLinearVariant("products", settings.Get("products"));
  ReadTraining(settings, seed, config);
  ReadPatchDropout(settings, config.model);
  config.telemetry.tensors_every = 1;
  return config;
}

}  // namespace feature_statistics

Experiment FeatureStatistics() {
  using namespace feature_statistics;
  Experiment experiment;
  experiment.name = "feature-statistics";
  experiment.title = "magnitudes of features and gradients through training";
  experiment.reproduces = "Figure 11, Section 2.3 of [SwitchBack]";
  experiment.description = kDescription;
  experiment.options = Options();
  experiment.presets = {{"quick", 3, 45}, {"small", 3}, {"paper", 3}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = TrainingScaleText;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
