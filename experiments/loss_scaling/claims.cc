// The evidence of `loss-scaling` (appendix G of [SwitchBack]).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/loss_scaling/loss_scaling.h"
#include "experiments/study/outcomes.h"

namespace numsim::experiments::loss_scaling {
namespace {

Frame Runs(const Results& results) { return results.Of("runs"); }

std::string FirstScale(const Settings& settings) { return settings.GetList("scales").front(); }

constexpr double kFew = 0.05;  // share of the tensors; one of the smallest model is 0.02

Evidence WhatABurstSkips(const Results& results) {
  Evidence evidence;
  bool holds = true;
  for (const std::string scaler : {kDynamic, kTensor}) {
    const Arm arm = {scaler, FirstScale(results.settings), kBurst};
    double least = 1, most = 0;
    for (const double share : results.OfArm(Runs(results), arm).Numbers("burst_skipped")) {
      if (std::isnan(share)) return NotTestedBecause("a run diverged before the burst");
      least = std::min(least, share);
      most = std::max(most, share);
    }
    holds = holds && (scaler == kDynamic ? least == 1 : most > 0 && most <= kFew);
    evidence.measured += fmt::format("\n  {}: {:.3g} to {:.3g}", scaler, least, most);
  }
  evidence.exact = holds;
  return evidence;
}

Evidence ThousandsOfSteps(const Results& results) {
  constexpr double kThousands = 1000;
  Evidence evidence;
  bool holds = true;
  results.Of("recovery").ForEach([&](const Frame& row) {
    const double steps = row.Number("steps");
    holds = holds && steps >= kThousands && steps == 2000 * row.Number("burst");
    evidence.measured +=
        fmt::format("\n  {} in a row: {} steps", row.Text("burst"), row.Text("steps"));
  });
  evidence.exact = holds;
  return evidence;
}

constexpr double kLeastSkipped = 10;  // updates that a statement about their tensors needs

// Returns the number of skipped updates of tensors in blocks and before them.
double SkippedInBlocks(const Results& results, const Arm& arm) {
  double skipped = 0;
  results.OfArm(results.Of("tensors"), arm).ForEach([&](const Frame& row) {
    const std::string tensor = row.Text("tensor");
    if (IsEarly(tensor) || IsLate(tensor)) skipped += row.Number("skipped");
  });
  return skipped;
}

Evidence EarlyTensors(const Results& results) {
  std::vector<std::string> scales = results.settings.GetList("scales");
  std::ranges::sort(scales, {}, [](const std::string& scale) { return std::stod(scale); });
  for (const std::string& scale : scales) {
    const Arm arm{kTensor, scale, kNatural};
    SeedValues shares;
    results.OfArm(Runs(results), arm).ForEach([&](const Frame& run) {
      const double early = run.Number("early");
      if (!std::isnan(early)) shares[run.Text("seed")] = early;
    });
    if (shares.size() >= 2 && SkippedInBlocks(results, arm) >= kLeastSkipped) {
      return AgainstReference("early tensors", shares, 1);
    }
  }
  return LeftOutBecause(fmt::format(
      "fewer than {} updates overflowed by themselves in two seeds (--scales)", kLeastSkipped));
}

constexpr double kLeastSpikes = 10;

// Compares the loss spikes that coincide with those of a series, with those that do so by chance.
std::function<Evidence(const Results&)> Coincidences(const std::string& series) {
  return [=](const Results& results) {
    double all = 0;
    SeedValues excess;
    for (const Frame& seed : Runs(results).Where("event", kNatural).By({"seed"})) {
      double spikes = 0, together = 0, expected = 0;
      seed.ForEach([&](const Frame& run) {
        const double own = run.Number("loss_spikes");
        spikes += own;
        together += run.Number("with_" + series);
        expected += own * run.Number("near_" + series);
      });
      all += spikes;
      if (spikes > 0) excess[seed.Text("seed")] = (together - expected) / spikes;
    }
    if (all >= kLeastSpikes && excess.size() >= 2) {
      return AgainstReference("above chance", excess, 0);
    }
    return LeftOutBecause(
        fmt::format("{:.0f} loss spikes, expected at least {:.0f}", all, kLeastSpikes));
  };
}

}  // namespace

Evidence Compare(const Results& results,
                 const study::ClaimRow& claim,
                 const std::vector<study::ArmContrast>& contrasts) {
  Evidence evidence = CompareArms(results, Runs(results), contrasts, claim.outcome);
  evidence.parameters = Runs(results).Number("parameters");
  return evidence;
}

void AddClaimFunctions(study::Functions& functions) {
  functions.values = {{"first", FirstScale}};
  functions.outcomes = {{"loss", study::LossOrStart}};
  functions.evidence = {{"what-a-burst-skips", WhatABurstSkips},
                        {"recovery", ThousandsOfSteps},
                        {"early-tensors", EarlyTensors},
                        {"spikes-with-gradients", Coincidences("gradient")},
                        {"spikes-with-activations", Coincidences("activation")}};
}

}  // namespace numsim::experiments::loss_scaling
