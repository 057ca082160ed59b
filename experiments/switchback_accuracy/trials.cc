// The trials of `switchback-accuracy`, and the checks of its options.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/shared/training.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/base/error.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

void CheckOptions(const Settings& settings) {
  const int64_t steps = settings.GetInteger("steps", 10, kMostSteps);
  settings.GetInteger("records", 2, steps);
  settings.GetInteger("warmup", 0, steps);
  settings.GetInteger("shadow-steps", 0, steps);
  settings.GetInteger("shadow-seeds", 0, 1'000'000);
  settings.GetInteger("shapes-size", 64, int64_t{1} << 32);
  settings.GetInteger("text-size", 1 << 14, int64_t{1} << 32);
  // The options of both models are checked, even if only one is trained.
  for (const char* const model : {"clip", "llama"}) {
    settings.GetDouble(fmt::format("lr-{}", model), 1e-12, 100);
    const std::string sizes = fmt::format("sizes-{}", model);
    ReadSizes(settings, sizes);
    CheckDistinct(sizes, settings.GetList(sizes));
    const std::string batches = fmt::format("batches-{}", model);
    settings.GetIntegers(batches, 1, 1 << 20);
    CheckDistinct(batches, settings.GetList(batches));
  }
  CheckDistinct("models", settings.GetList("models"));
}

ModelKind ParseModel(const std::string& text) {
  if (text == "clip") return ModelKind::kClip;
  if (text == "llama") return ModelKind::kLlama;
  throw Error::Format("--models: '{}' is not one of clip, llama", text);
}

// Checks every size of a model with the largest batch, which needs the most data.
void CheckModel(const Settings& settings, const std::string& model, Training training) {
  const std::vector<int64_t> batches = settings.GetIntegers("batches-" + model, 1, 1 << 20);
  training.batch = static_cast<size_t>(*std::max_element(batches.begin(), batches.end()));
  const std::string sizes = "sizes-" + model;
  std::vector<TrainConfig> configs;
  for (const ModelSize& size : ReadSizes(settings, sizes)) {
    training.size = size;
    configs.push_back(ConfigOf(settings, training, 0));
  }
  CheckTrainings(settings,
                 configs,
                 {{"model.layers", sizes},
                  {"model.width", sizes},
                  {"model.heads", sizes},
                  {"train.batch", "batches-" + model},
                  {"schedule.peak", "lr-" + model},
                  {"data.size", model == "clip" ? "shapes-size" : "text-size"}});
}

// Returns the relative cost of a step: its multiplications, without those of the heads.
double CostOf(const TrainConfig& config) {
  const ModelConfig& model = config.model;
  const auto number = [](size_t n) { return static_cast<double>(n); };
  double rows = number(model.context);
  if (model.kind == ModelKind::kClip) {
    constexpr double kCaption = 48;  // approximate length of a caption
    const double side = number(config.data.image) / number(model.patch);
    rows = side * side + 1 + kCaption;
  }
  return number(config.train.batch) * rows * number(model.layers) * number(model.width) *
         number(model.width);
}

void AddTrials(const Settings& settings,
               const std::string& model,
               const std::vector<Variant>& variants,
               std::vector<Trial>& trials) {
  Training training{ParseModel(model), {}, 0, kBaseline};
  CheckModel(settings, model, training);
  for (const ModelSize& size : ReadSizes(settings, "sizes-" + model)) {
    for (const int64_t batch : settings.GetIntegers("batches-" + model, 1, 1 << 20)) {
      for (const Variant& variant : variants) {
        training = {training.model, size, static_cast<size_t>(batch), variant};
        for (int i = 0; i < settings.seeds; ++i) {
          const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
          trials.push_back(
              {.label = fmt::format(
                   "{} {} batch={} {} seed={}", model, Text(size), batch, variant.Text(), seed),
               .seed = seed,
               .parameters = {{"model", model},
                              {"size", Text(size)},
                              {"batch", fmt::format("{}", batch)},
                              {"variant", variant.Text()}},
               .cost = CostOf(ConfigOf(settings, training, seed))});
        }
      }
    }
  }
}

}  // namespace

Training TrainingOf(const Trial& trial) {
  const auto at = [&](const char* name) -> const std::string& { return trial.parameters.at(name); };
  return {ParseModelKind(at("model")),
          ParseSize("sizes-" + at("model"), at("size")),
          std::stoull(at("batch")),
          ParseVariant(at("variant"))};
}

std::vector<TrainingOfRow> TrainingsOf(const Settings& settings, const Trial& trial) {
  const Training training = TrainingOf(trial);
  const TrainConfig config = ConfigOf(settings, training, trial.seed);
  TrainConfig fitted = config;
  if (training.model == ModelKind::kClip) FitToData(fitted, OpenData(config.data)->shape());
  const Variant& variant = training.variant;
  return {{{std::string(ToString(training.model)),
            Text(training.size),
            Tokens(fitted),
            variant.kind,
            variant.format,
            variant.gradient_format,
            variant.layers,
            trial.seed},
           config}};
}

std::vector<Trial> Trials(const Settings& settings) {
  CheckOptions(settings);
  const std::vector<Variant> variants = VariantsOf(settings);
  std::vector<Trial> trials;
  for (const std::string& model : settings.GetList("models")) {
    AddTrials(settings, model, variants, trials);
  }
  return trials;
}

}  // namespace numsim::experiments::switchback_accuracy
