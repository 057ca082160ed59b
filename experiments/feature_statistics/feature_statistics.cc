#include "experiments/feature_statistics/feature_statistics.h"

#include <algorithm>
#include <limits>

#include "experiments/runner/settings.h"
#include "experiments/shared/linear_variant.h"

namespace numsim::experiments {
namespace feature_statistics {
namespace {

using namespace study;

constexpr double kMostGain = 100;

Choice GainChoice(const std::string& text) {
  Settings one;
  one.options["layer-scales"] = text;
  const double gain = one.GetDouble("layer-scales", 0, kMostGain);
  return {FormatCell(gain), {"model.layer_scale=$"}};
}

// Returns the values of a list in its order. Throws Error if one is listed twice.
std::vector<std::string> DistinctOf(const Axis& axis, const Settings& settings) {
  const std::string& option = axis.options.front();
  std::vector<std::string> values;
  for (const std::string& text : settings.GetList(option)) {
    values.push_back(ChoiceOf(axis, text).name);
  }
  CheckDistinct(option, values);
  return values;
}

std::vector<Arm> ArmsOf(const Study& study, const Settings& settings) {
  HistoriesOf(settings);
  ReadSizes(settings, "sizes");  // its errors name the option
  const int64_t steps = settings.GetInteger("steps", 2, std::numeric_limits<int32_t>::max());
  settings.GetInteger("warmup", 0, steps - 1);
  const std::vector<std::string> gains = DistinctOf(study.axes[1], settings);
  std::vector<Arm> arms;
  for (const std::string& size : DistinctOf(study.axes[0], settings)) {
    for (const std::string& gain : gains) arms.push_back({size, gain});
  }
  return arms;
}

Keys Products(const Settings& settings, const Arm&) {
  const LinearOptions linear = ParseLinearVariant("products", settings.Get("products"));
  Keys keys = {"linear.kind=" + linear.kind};
  if (!linear.format.empty()) keys.push_back("linear.format=" + linear.format);
  if (!linear.gradient_format.empty()) {
    keys.push_back("linear.gradient_format=" + linear.gradient_format);
  }
  return keys;
}

double Cost(const TrainConfig& config) {
  const auto width = static_cast<double>(config.model.width);
  return static_cast<double>(config.model.layers) * width * width;
}

}  // namespace

std::vector<size_t> HistoriesOf(const Settings& settings) {
  std::vector<size_t> histories = {1};
  for (const int64_t history : settings.GetIntegers("histories", 1, 1 << 20)) {
    histories.push_back(static_cast<size_t>(history));
  }
  std::ranges::sort(histories);
  histories.erase(std::unique(histories.begin(), histories.end()), histories.end());
  return histories;
}

}  // namespace feature_statistics

study::Study FeatureStatisticsStudy() {
  using namespace feature_statistics;
  Study study = ReadStudy(StudyText("feature_statistics"),
                          "feature_statistics/study.toml",
                          {.choices = {{"gain", GainChoice}},
                           .evidence = EvidenceFunctions(),
                           .probes = {{"blocks", Blocks()}},
                           .tables = DerivedTables(),
                           .figures = Figures()});
  study.computed = Products;
  study.arms = ArmsOf;
  study.cost = Cost;
  study.notes = Notes;
  return study;
}

Experiment FeatureStatistics() { return study::MakeExperiment(FeatureStatisticsStudy()); }

}  // namespace numsim::experiments
