// The claims of `fp8-interventions`, and what a run is evidence of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/runner/model_size.h"
#include "experiments/shared/special_values.h"
#include "experiments/study/outcomes.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::fp8_interventions {
namespace {

using namespace study;

Frame OfBf16(const Results& results, const char* intervention) {
  return OfArm(OfTower(results.Of("features")), intervention, kBf16);
}

double LowestLoss(const Frame& training) {
  double lowest = kInfinity;
  for (const double loss : training.Numbers("valid_loss")) lowest = std::min(lowest, loss);
  return lowest;
}

// Returns log2 of E|x_k| of a training where its validation loss first falls to `loss`, interpolated
// between its records.
double LogMagnitudeAt(const Frame& training, double loss) {
  const std::vector<double> losses = training.Numbers("valid_loss");
  const std::vector<double> magnitudes = training.Numbers("mean_abs_rest");
  const auto log2_of = [&](size_t i) { return Log(magnitudes[i]) / Log(2.0); };
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!(losses[i] <= loss)) continue;
    if (i == 0) return log2_of(0);
    const double share = (losses[i - 1] - loss) / (losses[i - 1] - losses[i]);
    return log2_of(i - 1) + share * (log2_of(i) - log2_of(i - 1));
  }
  return kNaN;
}

SeedValues GrowthOverBlocks(const Results& results) {
  const Frame end = LastSteps(results, OfBf16(results, kNone));
  return ForBoth(AfterLastBlock(end), end.Where("block", 0), [](const Frame& a, const Frame& b) {
    return Log(a.Number("mean_abs_rest") / b.Number("mean_abs_rest")) / Log(2.0);
  });
}

SeedValues NoneOverLayerScale(const Results& results) {
  const Frame none = AfterLastBlock(OfBf16(results, kNone));
  return ForBoth(none, AfterLastBlock(OfBf16(results, kScale)), [](const Frame& a, const Frame& b) {
    const double loss = std::max(LowestLoss(a), LowestLoss(b));
    return LogMagnitudeAt(a, loss) - LogMagnitudeAt(b, loss);
  });
}

// ---- what a run is evidence of

constexpr double kDivergesAbove = 420e6;  // parameters
constexpr double kMostHarm = 0.1;  // share of what bf16 learns that a stress may take from it

double ParametersOf(const Results& results) {
  return CountParameters(
             ConfigOf(results.study, results.settings, {kNone, kBf16}, results.settings.seed))
      .all;
}

// Returns why a run with a stress is no evidence; "" if it is, and for a run without a stress.
std::string WhyNoEvidence(const Results& results) {
  const Settings& settings = results.settings;
  if (StressOf(settings).empty()) return "";
  if (settings.Get("stress-chosen-on").empty()) {
    return "no evidence: --stress-chosen-on does not state the seeds on which the stress was chosen";
  }
  const auto first = static_cast<int64_t>(settings.seed);
  for (const int64_t seed :
       settings.GetIntegers("stress-chosen-on", 0, std::numeric_limits<int64_t>::max())) {
    if (seed < first || seed >= first + settings.seeds) continue;
    return fmt::format("no evidence: the stress was chosen on seed {}, which the run reports",
                       seed);
  }
  const Frame runs = results.Of("final");
  const Frame without = OfArm(runs, kUnstressed, kBf16), with = OfArm(runs, kNone, kBf16);
  // Learning counts from the loss of a guess, which an untrained CLIP exceeds.
  const double start = std::min(without.Mean("start_loss"), without.Mean("chance_loss"));
  const double learned = start - without.Mean("valid_loss");
  if (!(learned > 0)) {
    return "no evidence: bf16 without the stress diverged, learned nothing or was not trained";
  }
  const double harm = (with.Mean("valid_loss") - without.Mean("valid_loss")) / learned;
  if (harm <= kMostHarm) return "";
  return fmt::format(
      "no evidence: the stress takes {:.3g} % of what bf16 learns without it, more than {:g} %",
      100 * harm,
      100 * kMostHarm);
}

// Returns a function that compares the doublings of each seed with none.
std::function<Evidence(const Results&)> Doublings(const char* arm,
                                                  SeedValues (*values)(const Results&)) {
  return [=](const Results& results) {
    const SeedValues doublings = values(results);
    if (!doublings.empty()) return AgainstReference(arm, doublings, 0);
    return NotTestedBecause("no features of bf16 with these interventions were recorded");
  };
}

}  // namespace

Frame OfArm(const Frame& frame, const std::string& intervention, const std::string& format) {
  return frame.Where("intervention", intervention).Where("format", format);
}
Frame OfTower(const Frame& features) {
  const Frame images = features.Where("tower", "image");
  return images.Empty() ? features : images;
}
Frame AfterLastBlock(const Frame& features) {
  double last = 0;
  for (const double block : features.Numbers("block")) last = std::max(last, block);
  return features.Where("block", last);
}

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

std::string OutOfReach(const Results& results) {
  if (std::string stress = StressOf(results.settings); !stress.empty()) return stress;
  const std::string& model = results.settings.Get("model");
  const double parameters = ParametersOf(results);
  if (model == "clip" && parameters > kDivergesAbove) return "";
  return fmt::format(
      "out of reach: {} with about {:.3g} million parameters", model, parameters / 1e6);
}

// Compares trainings of a format and of bf16.
Evidence Compare(const Results& results,
                 const ClaimRow&,
                 const std::vector<ArmContrast>& contrasts) {
  if (std::string why = WhyNoEvidence(results); !why.empty()) return NotTestedBecause(why);
  std::vector<std::string> formats = {kBf16}, interventions;
  for (const auto& [arm, weight] : contrasts.front()) {
    formats.push_back(arm[1]);
    if (std::ranges::count(interventions, arm[0]) == 0) interventions.push_back(arm[0]);
  }
  const Frame pool = results.Of("final").Where([&](const Frame& run) {
    return std::ranges::count(formats, run.Text("format")) > 0 &&
           run.Text("intervention") != kUnstressed;
  });
  std::ranges::sort(interventions, std::greater<>());  // none before layer-scale
  for (const std::string& intervention : interventions) {
    const Frame bf16 = OfArm(pool, intervention, kBf16);
    if (bf16.Empty() || !bf16.Where([](const Frame& run) { return Failed(run); }).Empty()) {
      return NotTestedBecause("bf16 itself fails or was not trained with " +
                              fmt::format("{}", fmt::join(interventions, ", ")));
    }
  }
  Evidence evidence = CompareArms(results, pool, contrasts, [](const Frame& run) {
    return run.Text("status") == "finished" ? run.Number("valid_loss") : kInfinity;
  });
  evidence.diverged_value = pool.Mean("start_loss");
  evidence.parameters = ParametersOf(results);
  evidence.measured = StressOf(results.settings);
  return evidence;
}

Named<std::function<Evidence(const Results&)>> EvidenceFunctions() {
  return {{"growth-over-blocks", Doublings("last over first block", GrowthOverBlocks)},
          {"none-over-layer-scale", Doublings("none over layer-scale", NoneOverLayerScale)}};
}

std::string Notes(const Results& results) {
  double diverged = 0, collapsed = 0;
  for (const double number : results.Of("outcomes").Numbers("diverged")) diverged += number;
  for (const double number : results.Of("outcomes").Numbers("collapsed")) collapsed += number;
  const std::string stress = StressOf(results.settings);
  return fmt::format(
      "{}{}{:g} trainings diverged and {:g} collapsed (their validation loss is less than {:g} % "
      "below that of a model that guesses at random), over all formats and interventions.",
      stress.empty() ? "" : "Everything here is exploratory, ",
      stress.empty() ? "" : stress + ". ",
      diverged,
      collapsed,
      100 * kCollapsed);
}

}  // namespace numsim::experiments::fp8_interventions
