// Definition of the experiment `swiglu-alignment`: what study.toml does not say.
#include "experiments/swiglu_alignment/swiglu_alignment.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "experiments/shared/linear_variant.h"

namespace numsim::experiments {
namespace swiglu_alignment {
namespace {

using namespace study;

// A shorter training has a warm-up that is shorter in proportion.
Keys Computed(const Settings& settings, const Arm& arm) {
  const auto warmup = static_cast<uint64_t>(settings.GetInteger("warmup", 0, kMostSteps));
  const auto centre = static_cast<uint64_t>(settings.GetInteger("steps", 1, kMostSteps));
  Keys keys = {"data.size=$text-size",
               fmt::format("schedule.warmup={}", warmup * std::stoull(arm.back()) / centre)};
  const std::string& products = settings.Get("products");
  if (products == "fp32") return keys;
  const LinearOptions linear = ParseLinearVariant("products", products);
  keys.push_back("linear.kind=" + linear.kind);
  if (!linear.format.empty()) keys.push_back("linear.format=" + linear.format);
  if (!linear.gradient_format.empty()) {
    keys.push_back("linear.gradient_format=" + linear.gradient_format);
  }
  return keys;
}

double Cost(const TrainConfig& config) {
  return 10 + CostPerToken(config.model) * static_cast<double>(config.train.steps);
}

// ---- trials that train nothing

std::vector<Trial> ExactTrials(const Settings& settings) {
  RecordSteps(settings, 1);  // checks --points, which --steps limit by default alone
  std::vector<Trial> trials;
  const auto add = [&](const std::string& label, std::map<std::string, std::string> parameters) {
    trials.push_back(
        {.label = label, .seed = settings.seed, .parameters = std::move(parameters), .cost = 1});
  };
  for (const char* const part : {"stationary", "growth"}) add(part, {{"part", part}});
  const int64_t starts = settings.GetInteger("starts", 1, 10'000);
  for (int64_t i = 0; i < starts; ++i) {
    add(fmt::format("neuron start={}", i), {{"part", "starts"}, {"start", fmt::format("{}", i)}});
  }
  return trials;
}

Rows MeasureExact(const Settings& settings, const Trial& trial) {
  const std::string& part = trial.parameters.at("part");
  if (part == "stationary") return {{part, StationaryRows()}};
  if (part == "growth") return {{part, GrowthRows()}};
  return {{part, StartRows(settings, std::stoull(trial.parameters.at("start")))}};
}

std::string Notes(const Results& results) {
  const Frame runs = results.Of("runs");
  const size_t diverged = runs.Size() - runs.Where("status", "finished").Size();
  return fmt::format(
      "{} trainings, {} of them diverged.\n"
      "The trainings decay weights as AdamW does, not by the l2 term of Equation 1, which Adam "
      "would divide by the root of its second moment.",
      runs.Size(),
      diverged);
}

}  // namespace
}  // namespace swiglu_alignment

study::Study SwigluAlignmentStudy() {
  using namespace swiglu_alignment;
  Functions functions{
      .evidence = ExactEvidence(), .probes = {{"channels", Channels()}}, .figures = Figures()};
  AddClaimFunctions(functions);
  Study study =
      ReadStudy(StudyText("swiglu_alignment"), "swiglu_alignment/study.toml", std::move(functions));
  study.computed = Computed;
  study.cost = Cost;
  study.others.list = ExactTrials;
  study.others.run = MeasureExact;
  study.notes = Notes;
  return study;
}

Experiment SwigluAlignment() { return study::MakeExperiment(SwigluAlignmentStudy()); }

}  // namespace numsim::experiments
