#include "experiments/runner/pilot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "experiments/claims/power.h"
#include "experiments/runner/completion.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/seeds.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/io/csv.h"

namespace numsim::experiments {
namespace {

constexpr double kNoCost = std::numeric_limits<double>::quiet_NaN();

// The measured times of trials, as core-seconds per seed.
class Costs {
 public:
  Costs(const Experiment& experiment,
        const std::vector<Trial>& trials,
        const FinishedTrials& finished,
        int seeds) {
    // A trial has one core, unless it runs alone.
    const double cores = experiment.exclusive || experiment.timed ? ThreadCount() : 1;
    for (const auto& [index, entry] : finished) {
      const double seconds = cores * entry.seconds / seeds;
      of_arm_[trials[index].arm] += seconds;
      all_ += seconds;
    }
  }

  double All() const { return all_; }
  // Returns the costs of these arms; of all if one of them is no trial's.
  std::map<std::string, double> Of(const std::set<std::string>& arms) const {
    std::map<std::string, double> costs;
    for (const std::string& arm : arms) {
      const auto found = of_arm_.find(arm);
      if (found == of_arm_.end()) return of_arm_;
      costs.insert(*found);
    }
    return costs.empty() ? of_arm_ : costs;
  }

 private:
  std::map<std::string, double> of_arm_;
  double all_ = 0;
};

std::string TextOf(const Contrast& contrast) {
  std::string text;
  for (const ContrastTerm& term : contrast) {
    const double size = std::abs(term.weight);
    if (!text.empty() || term.weight < 0) text += term.weight < 0 ? " - " : " + ";
    text += size == 1 ? term.arm : fmt::format("{} ({})", FormatCell(size), term.arm);
  }
  return text;
}

std::set<std::string> ArmsOf(const JudgedClaim& claim) {
  std::set<std::string> arms;
  for (const Contrast& contrast : claim.evidence.contrasts) {
    for (const ContrastTerm& term : contrast) arms.insert(term.arm);
  }
  return arms;
}

bool IsPlanned(const SeedPlan& plan) { return plan.seeds > 0 && plan.seeds <= kMostSeeds; }

// Fills in the claims, and the sums over those that are primary.
void PlanClaims(const std::vector<JudgedClaim>& judged,
                const Settings& settings,
                const Costs& costs,
                PilotReport& report) {
  const auto primary = std::ranges::count_if(judged, [](const JudgedClaim& claim) {
    return claim.spec->primary && claim.spec->kind != ClaimKind::kExact &&
           (claim.evidence.not_tested.empty() || claim.evidence.left_out);
  });
  std::map<std::string, double> most;  // core-seconds by arm
  for (const JudgedClaim& claim : judged) {
    const int family = claim.spec->primary ? std::max<int>(1, static_cast<int>(primary)) : 1;
    PilotClaim& one = report.claims.emplace_back();
    one.spec = claim.spec;
    one.margin = claim.margin;
    std::vector<std::string> texts;
    for (const Contrast& contrast : claim.evidence.contrasts) texts.push_back(TextOf(contrast));
    one.contrasts = fmt::format("{}", fmt::join(texts, "; "));
    one.plan = PlanSeeds(claim, settings.seeds, family);
    one.core_seconds = kNoCost;
    if (!IsPlanned(one.plan)) continue;
    one.core_seconds = 0;
    for (const auto& [arm, seconds] : costs.Of(ArmsOf(claim))) {
      one.core_seconds += seconds * one.plan.seeds;
      if (claim.spec->primary) most[arm] = std::max(most[arm], seconds * one.plan.seeds);
    }
    if (claim.spec->primary) report.seeds = std::max(report.seeds, one.plan.seeds);
  }
  for (const auto& [arm, seconds] : most) report.core_seconds += seconds;
}

Table TableOf(const PilotReport& report) {
  Table table{{"claim",
               "primary",
               "kind",
               "contrasts",
               "residual_sd",
               "contrast_sd",
               "freedom",
               "margin",
               "unit",
               "seeds",
               "core_seconds",
               "note"},
              {}};
  for (const PilotClaim& claim : report.claims) {
    table.rows.push_back({claim.spec->id,
                          claim.spec->primary ? 1 : 0,
                          std::string(ToString(claim.spec->kind)),
                          claim.contrasts,
                          claim.plan.residual_sd,
                          claim.plan.contrast_sd,
                          claim.plan.freedom,
                          claim.margin,
                          claim.spec->margin.unit,
                          claim.plan.seeds,
                          claim.core_seconds,
                          claim.plan.note});
  }
  return table;
}

}  // namespace

PilotReport Pilot(const Experiment& experiment, RunOptions options) {
  if (experiment.claims.empty()) {
    throw Error::Format("{}: has no claims, so there is nothing to plan", experiment.name);
  }
  if (options.settings.seeds < 2) {
    throw Error::Format("--seeds {}: a pilot needs at least 2, since one has no scatter",
                        options.settings.seeds);
  }
  Experiment pilot = experiment;
  pilot.name = fmt::format("pilot of {}", experiment.name);
  options.settings.seed = kFirstPilotSeed;
  options.settings.max_seeds = 0;
  options.measure_only = true;
  PilotReport report;
  report.run = Run(pilot, options);
  if (report.run.interrupted || report.run.trials_missing > 0) return report;
  const std::vector<Trial> trials = ListTrials(pilot, options.settings);
  FinishedTrials finished;
  AddFinishedTrials(pilot, trials, options.out, finished);
  const Costs costs(pilot, trials, finished, options.settings.seeds);
  report.core_seconds_per_seed = costs.All();
  // The claims of `experiment`, which the report refers to.
  PlanClaims(JudgeTrials(experiment, options.settings, finished), options.settings, costs, report);
  WriteCsv(options.out / kPilotFile, TableOf(report));
  return report;
}

std::string PilotText(const PilotReport& report) {
  std::string text;
  for (const PilotClaim& claim : report.claims) {
    text += fmt::format("{} ({}, {})\n",
                        claim.spec->id,
                        ToString(claim.spec->kind),
                        claim.spec->primary ? "primary" : "exploratory");
    if (!claim.contrasts.empty()) text += fmt::format("  contrast  {}\n", claim.contrasts);
    if (std::isfinite(claim.plan.residual_sd)) {
      text += fmt::format(
          "  SD        {:.3g} of a run, {:.3g} of the contrast ({} degrees of freedom)\n",
          claim.plan.residual_sd,
          claim.plan.contrast_sd,
          claim.plan.freedom);
    }
    if (!claim.plan.note.empty()) {
      text += fmt::format("  seeds     unknown: {}\n", claim.plan.note);
      continue;
    }
    text += fmt::format("  seeds     {} at a margin of {} {}",
                        SeedsText(claim.plan.seeds),
                        FormatCell(claim.margin),
                        claim.spec->margin.unit);
    if (std::isfinite(claim.core_seconds)) {
      text += fmt::format(": {:.4g} core-seconds", claim.core_seconds);
    }
    text += "\n";
  }
  if (report.seeds == 0) return text + "no primary claim could be planned\n";
  return text +
         fmt::format(
             "all planned primary claims: {} seeds at most, {:.4g} core-seconds with each arm at "
             "the seeds that its claims need; {:.4g} with all arms at {} seeds\n",
             report.seeds,
             report.core_seconds,
             report.seeds * report.core_seconds_per_seed,
             report.seeds);
}

}  // namespace numsim::experiments
