#include "experiments/fp8_interventions/fp8_interventions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "experiments/shared/linear_variant.h"
#include "experiments/shared/special_values.h"
#include "experiments/study/outcomes.h"
#include "experiments/study/study_file.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments {
namespace fp8_interventions {
namespace {

using namespace study;

// Returns the name of a format in the tables: e3m2fn and e2m3fn have their shorter names of OCP.
std::string FormatName(const std::string& text) {
  const std::string name = ParseFormat(text).name;
  return name == "e3m2fn" || name == "e2m3fn" ? name.substr(0, 4) : name;
}

Choice TensorWise(const std::string& text) {
  try {
    const VariantFormats formats = SplitFormats(text);
    const std::string forward = FormatName(formats.format);
    const std::string gradient =
        formats.gradient_format.empty() ? forward : FormatName(formats.gradient_format);
    if (forward == kBf16 && gradient == kBf16) return {kBf16};
    const LinearOptions options{.kind = "tensor-wise",
                                .format = ParseFormat(forward).name,
                                .gradient_format = ParseFormat(gradient).name,
                                .high_precision = kBf16};
    MakeLinearRecipe(options);
    return {forward == gradient ? forward : forward + "/" + gradient,
            {"linear.kind=tensor-wise",
             "linear.format=" + options.format,
             "linear.gradient_format=" + options.gradient_format}};
  } catch (const Error& error) {
    throw Error::Format("is not FORWARD[/GRADIENT]: {}", error.what());
  }
}

// Adds the control that shows whether a stress harms bf16 itself.
std::vector<Arm> ArmsWithControl(const Study& study, const Settings& settings) {
  const std::string& seeds = settings.Get("stress-chosen-on");
  if (!seeds.empty()) {
    settings.GetIntegers("stress-chosen-on", 0, std::numeric_limits<int64_t>::max());
  }
  std::vector<Arm> arms = AllArms(study, settings);
  if (!StressOf(settings).empty()) arms.insert(arms.begin(), {kUnstressed, kBf16});
  return arms;
}

Keys TensorsEvery(const Settings& settings, const Arm&) {
  const int64_t steps = settings.GetInteger("steps", 1, kMostSteps);
  const int64_t every = steps / settings.GetInteger("snapshots", 1, kMostSteps);
  return {fmt::format("telemetry.tensors_every={}", std::max<int64_t>(1, every))};
}

// Until November 2026, e3m3 and e4m2 were formats without infinity and NaN in this experiment alone;
// e3m2 and e2m3 were those of OCP.
std::string FromFormerName(std::string_view word, bool has_keys) {
  if (has_keys) return numsim::FromFormerNames(word);
  if (word == "e3m3" || word == "e4m2") return std::string(word) + ":inf=none,nan=none";
  return word == "e3m2" || word == "e2m3" ? std::string(word) : numsim::FromFormerNames(word);
}

// ---- figures

std::vector<std::string> LowFormats(const Frame& frame) {
  std::vector<std::string> formats = frame.Distinct("format");
  std::erase(formats, kBf16);
  return formats;
}

Figure Underflow(const Results& results) {
  const Frame table = results.Of("quantised");
  Figure figure{
      "fp8-underflow", "Elements that underflow to zero, mean over layers", 2, {}, "quantised.csv"};
  for (const std::string& format : LowFormats(table)) {
    Panel& panel = figure.panels.emplace_back();
    panel.title = format;
    panel.x = AxisOf(table, "step", "step");
    panel.y = {.label = "share of elements stored as zero", .log10 = true, .low = 1e-6, .high = 1};
    for (const char* const intervention : {kNone, kScale}) {
      int style = 0;
      for (const std::string& operand : table.Distinct("operand")) {
        Series series =
            Line(OfArm(table, intervention, format).Where("operand", operand), "step", "underflow");
        series.style = style++;
        series.dashed = intervention == std::string_view(kScale);
        series.label = operand + ", " + intervention;
        if (!series.x.empty()) panel.series.push_back(std::move(series));
      }
    }
  }
  return figure;
}

Functions OwnFunctions() {
  return {.choices = {{"tensor-wise", TensorWise}},
          .evidence = EvidenceFunctions(),
          .obstacles = {{"out-of-reach", OutOfReach},
                        {"stress", [](const Results& run) { return StressOf(run.settings); }}},
          .rows = {{"start-of-bf16",
                    [](const Results&, const Frame& rows) {
                      return OfTower(rows).Where("step", 0).Where("format", kBf16);
                    }},
                   {"end-of-tower",
                    [](const Results& results, const Frame& rows) {
                      return LastSteps(results, OfTower(rows));
                    }},
                   {"last-block-of-bf16",
                    [](const Results&, const Frame& rows) {
                      return AfterLastBlock(OfTower(rows)).Where("format", kBf16);
                    }}},
          .figures = {{"training-loss",
                       LossFigure("fp8-loss",
                                  "Training loss by intervention",
                                  "format",
                                  "intervention",
                                  [](const std::string& format, const Frame&) {
                                    return format == kBf16 ? format : "tensor-wise " + format;
                                  })},
                      {"underflow", Underflow}}};
}

}  // namespace
}  // namespace fp8_interventions

study::Study Fp8InterventionsStudy() {
  using namespace fp8_interventions;
  Study study =
      ReadStudy(StudyText("fp8_interventions"), "fp8_interventions/study.toml", OwnFunctions());
  study.computed = TensorsEvery;
  study.arms = ArmsWithControl;
  study.common.compare = Compare;
  study.notes = Notes;
  study.from_former_names = [](const std::string& text) {
    return ReplaceFormatNames(text, FromFormerName);
  };
  return study;
}

Experiment Fp8Interventions() { return study::MakeExperiment(Fp8InterventionsStudy()); }

}  // namespace numsim::experiments
