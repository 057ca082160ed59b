#include "experiments/switchback_accuracy/switchback_accuracy.h"

#include <fmt/format.h>

#include "experiments/runner/settings.h"
#include "experiments/switchback_accuracy/evidence.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace switchback_accuracy {
namespace {

using namespace study;

constexpr int64_t kLargestBatch = 1 << 20;

Choice SizeChoice(const std::string& text) {
  const ModelSize size = ParseSize("size", text);
  ModelConfig model;
  SetSize(size, model);
  return {Text(size),
          {fmt::format("model.layers={}", model.layers),
           fmt::format("model.width={}", model.width),
           fmt::format("model.heads={}", model.heads)}};
}

Choice BatchChoice(const std::string& text) {
  Settings single;
  single.options["batch"] = text;
  return {fmt::format("{}", single.GetInteger("batch", 1, kLargestBatch)), {"train.batch=$"}};
}

// Returns the model's inner dimension; the image of a folder is known from its files.
Row TokensCell(const TrainConfig& config) {
  TrainConfig fitted = config;
  fitted.model.image = config.data.image;
  if (config.data.kind == DataKind::kCaptions) FitToData(fitted, OpenData(config.data)->shape());
  return {Tokens(fitted)};
}

Row VariantCells(const TrainConfig& config) {
  const Variant variant = VariantOf(config);
  return {variant.kind, variant.format, variant.gradient_format, variant.layers};
}

// Returns the values of an option of an axis, none of which may be there twice.
std::vector<std::string> DistinctValues(const Settings& settings,
                                        const study::Axis& axis,
                                        const std::string& option) {
  CheckDistinct(option, settings.GetList(option));
  return ValuesOf(axis, settings, option);
}

// Seeds vary fastest, then variants; the options of both models are checked, even if only one is
// trained.
std::vector<Arm> ArmsOf(const Study& study, const Settings& settings) {
  const study::Axis &model_axis = study.axes[kModel], &size_axis = study.axes[kSize];
  const study::Axis &batch_axis = study.axes[kBatch], &variant_axis = study.axes[kVariant];
  std::map<std::string, std::vector<std::string>> sizes, batches;
  for (size_t i = 0; i < model_axis.choices.size(); ++i) {
    const std::string& model = model_axis.choices[i].name;
    ReadSizes(settings, size_axis.options[i]);
    settings.GetIntegers(batch_axis.options[i], 1, kLargestBatch);
    sizes[model] = DistinctValues(settings, size_axis, size_axis.options[i]);
    batches[model] = DistinctValues(settings, batch_axis, batch_axis.options[i]);
  }
  const std::vector<std::string> variants = ValuesOf(variant_axis, settings);
  std::vector<Arm> arms;
  for (const std::string& model : DistinctValues(settings, model_axis, "models")) {
    for (const std::string& size : sizes.at(model)) {
      for (const std::string& batch : batches.at(model)) {
        for (const std::string& variant : variants) arms.push_back({model, size, batch, variant});
      }
    }
  }
  return arms;
}

Keys GivenData(const Settings& settings, const Arm& arm) {
  const bool clip = arm[kModel] == "clip";
  const char* const option = clip ? "captions" : "text";
  if (settings.Get(option).empty()) return {};
  return {fmt::format("data.kind={}", option), fmt::format("data.path=${}", option)};
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

// Returns "clip 2x64, llama 2x64,4x128".
std::string SizesText(const Settings& settings) {
  std::string text;
  for (const std::string& model : settings.GetList("models")) {
    text += (text.empty() ? "" : ", ") + model + " " + settings.Get("sizes-" + model);
  }
  return text;
}

std::string Notes(const Results& results) {
  std::string text = "Trained:";
  for (const Frame& size : results.Of("gaps").By({"model", "size"})) {
    text += fmt::format("{} {} {} ({} parameters)",
                        text.back() == ':' ? "" : ",",
                        size.Text("model"),
                        size.Text("size"),
                        size.Text("parameters"));
  }
  return text +
         ". For Llama the margin and the loss are per byte; losses of CLIP are comparable only for "
         "the same number of tokens.";
}

Functions OwnFunctions() {
  return {.choices = {{"size", SizeChoice}, {"batch", BatchChoice}, {"variant", VariantChoice}},
          .cells = {{"tokens", TokensCell}, {"variant", VariantCells}},
          .values = {{"sizes", SizesText}},
          .outcomes = {{"loss", Loss}, {"accuracy", Accuracy}},
          .evidence = EvidenceFunctions(),
          .obstacles = {{"out-of-reach", OutOfReach}},
          .probes = {{"gradients", Gradients()}},
          .tables = {{"gaps", Gaps}, {"gradient-errors", GradientErrors}},
          .figures = Figures()};
}

}  // namespace
}  // namespace switchback_accuracy

study::Study SwitchbackAccuracyStudy() {
  using namespace switchback_accuracy;
  Study study =
      ReadStudy(StudyText("switchback_accuracy"), "switchback_accuracy/study.toml", OwnFunctions());
  study.computed = GivenData;
  study.arms = ArmsOf;
  study.cost = CostOf;
  study.common.compare = Compare;
  study.notes = Notes;
  return study;
}

Experiment SwitchbackAccuracy() { return study::MakeExperiment(SwitchbackAccuracyStudy()); }

}  // namespace numsim::experiments
