// The evidence of claims of `fp8-outliers`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/fp8_outliers/fp8_outliers.h"
#include "experiments/fp8_outliers/identity.h"
#include "experiments/runner/settings.h"
#include "experiments/study/outcomes.h"

namespace numsim::experiments::fp8_outliers {
namespace {

using namespace study;

constexpr const char* kTeMax = "te-max";

Frame RunsOf(const Results& results, const std::string& plant, const std::string& lr) {
  return results.Of(kRunsTable).Where("plant", plant).Where("lr", lr);
}

// Returns whether a run can have the plant: a kind that needs a size and has none was left out.
bool HasPlant(const std::string& plant) {
  return plant == kScratch || plant == kNone || plant.find(':') != plant.npos;
}

// Whether the plants leave bf16 as it is: otherwise the comparisons are no evidence. The control is
// delayed scaling under the plant, which is to fail.
std::function<Evidence(const Results&)> SparesBf16(const char* kind) {
  return [kind](const Results& results) {
    const Frame runs =
        results.Of(kRunsTable).Where("lr", results.settings.Get("lr")).Where([](const Frame& run) {
          return run.Text("plant") != kScratch;
        });
    const std::vector<std::string> plants = PlantsOf(results.settings, kind);
    const Frame none = runs.Where("plant", std::string(kNone)).Where("recipe", std::string(kBf16));
    if (plants.empty() || none.Empty()) {
      return NotTestedBecause(fmt::format("--plants leaves out none or {}", kind));
    }
    Evidence evidence;
    evidence.parameters = runs.Number("parameters");
    evidence.outcomes = OutcomesOf(runs, {"recipe", "plant"}, LossOrStart);
    const auto arm = [](const std::string& recipe, const std::string& plant) {
      return recipe + " / " + plant;
    };
    const std::string& plant = plants.front();
    evidence.contrasts = {Gap(arm(kBf16, plant), arm(kBf16, kNone))};
    evidence.control = Gap(arm("te-max", plant), arm(kBf16, kNone));
    if (runs.Where("plant", plant).Where("recipe", std::string("te-max")).Empty()) {
      evidence.control.clear();
      evidence.no_control = "the control was not trained: te-max (--recipes)";
    }
    return evidence;
  };
}

// Figures 10 and 11, at each learning rate.
Evidence SmoothLowersBf16(const Results& results) {
  const Frame runs = results.Of(kRunsTable).Where("plant", std::string(kScratch));
  Evidence evidence;
  evidence.outcomes = OutcomesOf(runs, {"recipe", "lr"}, LossOrStart);
  for (const std::string& lr : results.settings.GetList("scratch-lr")) {
    const Frame rate = runs.Where("lr", lr);
    const bool both = !rate.Where("recipe", std::string("bf16-smooth-token")).Empty() &&
                      !rate.Where("recipe", std::string(kBf16)).Empty();
    if (both) evidence.contrasts.push_back(Gap("bf16-smooth-token / " + lr, "bf16 / " + lr));
  }
  if (evidence.contrasts.empty()) {
    return NotTestedBecause("--scratch-bf16 leaves out bf16 or bf16-smooth-token");
  }
  evidence.parameters = runs.Number("parameters");
  return evidence;
}

Evidence SmoothPerChannelChangesBf16(const Results& results) {
  const Frame runs = RunsOf(results, kScratch, results.settings.Get("lr"));
  const SeedValues smooth =
      runs.Where("recipe", std::string("bf16-smooth")).OverSeeds("valid_loss");
  const SeedValues plain = runs.Where("recipe", std::string(kBf16)).OverSeeds("valid_loss");
  if (smooth.empty() || plain.empty()) {
    return NotTestedBecause("--scratch leaves out bf16 or bf16-smooth");
  }
  Evidence evidence;
  size_t equal = 0;
  for (const auto& [seed, loss] : smooth) {
    const auto other = plain.find(seed);
    equal += other != plain.end() && other->second == loss ? 1 : 0;
  }
  evidence.exact = equal < smooth.size();
  evidence.measured = fmt::format("{} of {} seeds end in the same loss", equal, smooth.size());
  return evidence;
}

// Below a growth at which delayed scaling turns elements into zeros it cannot fail, so that its loss says
// nothing.
Evidence GrowingWeightsCostLoss(const Results& results) {
  const std::vector<std::string> plants = PlantsOf(results.settings, kWeights);
  if (plants.empty()) return NotTestedBecause("--plants leaves out weights");
  const std::string &plant = plants.front(), &lr = results.settings.Get("lr");
  const Frame runs = RunsOf(results, plant, lr).Where("recipe", std::string(kTeMax));
  const Frame flushed =
      runs.Where([](const Frame& run) { return run.Number("flushed_steps") > 0; });
  if (!runs.Empty() && flushed.Empty()) {
    Evidence none = NotTestedBecause(
        fmt::format("{}no step of te-max under {} turns more than {:g} % of the elements into "
                    "zeros, so that delayed scaling could not fail",
                    kNoEvidence,
                    plant,
                    100 * kMostZeros));
    none.left_out = true;
    return none;
  }
  ClaimRow losses;
  losses.outcome = LossOrStart;
  return Compare(results, losses, {{{{plant, kTeMax, lr}, 1}, {{plant, kBf16, lr}, -1}}});
}

constexpr double kRounding = 1e-12;  // of float64, over some thousand operations

Evidence SmoothIsTheIdentity(const Results& /*results*/) {
  Evidence evidence;
  const double difference = GradientDifference();
  evidence.exact = difference < kRounding;
  evidence.measured = fmt::format("{:.2g}", difference);
  return evidence;
}

// The logits of a model before and after its scales are merged into its weights.
Evidence MergedLogits(const char* recipe) {
  const auto [logits, different, relative] = MergeScales(recipe);
  Evidence evidence;
  evidence.exact = different == 0;
  evidence.measured = fmt::format(
      "{} of {} logits differ, relative difference {:.2g}", different, logits, relative);
  return evidence;
}

// Nobody claims the same bits in FP8: the paper quantises the merged weights anew.
Evidence MergedInFp8(const Results& /*results*/) {
  Evidence evidence = MergedLogits("fp8-current");
  evidence.exact.reset();
  evidence.not_tested =
      "no run measures the loss; the merged weights are rounded anew, so that logits differ";
  return evidence;
}

// Returns whether one of the recipes has a step that a claim counts: 0 steps have no ratio to 0.
bool AnyStepCounts(const Frame& runs,
                   const ClaimRow& claim,
                   const std::vector<ArmContrast>& contrasts) {
  bool any = false;
  for (const ArmContrast& arms : contrasts) {
    for (const auto& [arm, weight] : arms) {
      runs.Where("recipe", arm[kRecipe]).ForEach([&](const Frame& run) {
        any = any || claim.outcome(run) > 0;
      });
    }
  }
  return any;
}

}  // namespace

Evidence Compare(const Results& results,
                 const ClaimRow& claim,
                 const std::vector<ArmContrast>& contrasts) {
  const Arm& first = contrasts.at(0).at(0).first;
  const std::string& plant = first[kPlant];
  const std::string kind = plant.substr(0, plant.find(':'));
  if (!HasPlant(plant)) return NotTestedBecause(fmt::format("--plants leaves out {}", kind));
  const auto name = [&](const std::string& recipe) { return plant + " / " + recipe; };
  const Frame runs = RunsOf(results, plant, first[kLr]);
  Evidence evidence;
  for (const ArmContrast& arms : contrasts) {
    Contrast& contrast = evidence.contrasts.emplace_back();
    for (const auto& [arm, weight] : arms) {
      if (runs.Where("recipe", arm[kRecipe]).Empty()) {
        return NotTestedBecause(fmt::format("no {} with recipe {}", plant, arm[kRecipe]));
      }
      contrast.push_back({name(arm[kRecipe]), weight});
    }
  }
  evidence.parameters = runs.Number("parameters");
  // The size of an outlier stands in the name of its contrast.
  evidence.outcomes = OutcomesOf(runs, {"plant", "recipe"}, claim.outcome);
  if (claim.kind == ClaimKind::kRatio && !AnyStepCounts(runs, claim, contrasts)) {
    return LeftOutBecause("no step of either recipe is of that kind");
  }
  return evidence;
}

Named<std::function<Evidence(const Results&)>> EvidenceFunctions() {
  return {{"once-spares-bf16", SparesBf16(kOnce)},
          {"every-spares-bf16", SparesBf16(kEvery)},
          {"weights-spares-bf16", SparesBf16(kWeights)},
          {"growing-weights-cost-loss", GrowingWeightsCostLoss},
          {"smooth-lowers-bf16-loss", SmoothLowersBf16},
          {"smooth-per-channel-changes-bf16", SmoothPerChannelChangesBf16},
          {"smooth-is-the-identity", SmoothIsTheIdentity},
          {"merging-is-free-in-bf16", [](const Results&) { return MergedLogits("bf16"); }},
          {"merging-is-free-in-fp8", MergedInFp8}};
}

}  // namespace numsim::experiments::fp8_outliers
