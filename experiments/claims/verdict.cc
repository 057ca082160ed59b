#include "experiments/claims/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/claims/claim_checks.h"
#include "experiments/claims/contrast_statistics.h"
#include "experiments/claims/paired.h"
#include "experiments/claims/power.h"
#include "experiments/claims/ratio_statistics.h"
#include "experiments/claims/share_statistics.h"
#include "numsim/base/keyword.h"

namespace numsim::experiments {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr Keyword<Verdict> kVerdicts[] = {{"supported", Verdict::kSupported},
                                          {"contradicted", Verdict::kContradicted},
                                          {"inconclusive", Verdict::kInconclusive},
                                          {"not tested", Verdict::kNotTested},
                                          {"exact: holds", Verdict::kExactHolds},
                                          {"exact: refuted", Verdict::kExactRefuted}};

constexpr Keyword<ClaimKind> kKinds[] = {{"difference", ClaimKind::kDifference},
                                         {"equivalence", ClaimKind::kEquivalence},
                                         {"order", ClaimKind::kOrder},
                                         {"ratio", ClaimKind::kRatio},
                                         {"divergence", ClaimKind::kDivergence},
                                         {"exact", ClaimKind::kExact}};

// The runs of one arm of a claim.
struct Runs {
  std::string arm;
  int count = 0;  // diverged ones included
  int diverged = 0;
};

size_t IndexOf(const OutcomeTable& table, const std::string& arm) {
  return std::find(table.arms.begin(), table.arms.end(), arm) - table.arms.begin();
}

Runs RunsOf(const OutcomeTable& table, const std::string& arm) {
  Runs runs = {arm};
  const size_t index = IndexOf(table, arm);
  if (index == table.arms.size()) return runs;
  for (int seed = 0; seed < table.seeds; ++seed) {
    const double value = table.values[index * table.seeds + seed];
    runs.count += !std::isnan(value);
    runs.diverged += std::isinf(value);
  }
  return runs;
}

// Returns the arms that have a weight in contrasts, each once.
std::vector<Runs> RunsOfArms(const std::vector<Contrast>& contrasts, const OutcomeTable& table) {
  std::vector<Runs> all;
  for (const Contrast& contrast : contrasts) {
    for (const ContrastTerm& term : contrast) {
      const bool known =
          std::any_of(all.begin(), all.end(), [&](const Runs& r) { return r.arm == term.arm; });
      if (!known) all.push_back(RunsOf(table, term.arm));
    }
  }
  return all;
}

// Returns the outcomes in which a diverged run of the claim's arms is what the rule
// says and any other diverged run is missing.
std::vector<double> OutcomesFor(const ClaimTest& test,
                                const OutcomeTable& table,
                                const std::vector<Runs>& runs) {
  std::vector<double> values = table.values;
  for (double& value : values) value = std::isinf(value) ? kNaN : value;
  if (test.diverged == Diverged::kMissing) return values;
  for (const Runs& arm : runs) {
    const size_t first = IndexOf(table, arm.arm) * table.seeds;
    for (size_t i = first; i < first + table.seeds; ++i) {
      if (std::isinf(table.values[i])) values[i] = test.diverged_value;
    }
  }
  return values;
}

std::vector<double> WeightsOf(const Contrast& contrast, const OutcomeTable& table) {
  std::vector<double> weights(table.arms.size(), 0.);
  for (const ContrastTerm& term : contrast) weights[IndexOf(table, term.arm)] += term.weight;
  return weights;
}

std::vector<std::vector<double>> WeightsOf(const ClaimTest& test, const OutcomeTable& table) {
  std::vector<std::vector<double>> rows;
  for (const Contrast& contrast : test.contrasts) rows.push_back(WeightsOf(contrast, table));
  return rows;
}

// Returns the counts of the two arms of each contrast, at the seeds that both have.
std::vector<PairedCounts> CountsOf(const ClaimTest& test,
                                   const OutcomeTable& table,
                                   const std::vector<double>& outcomes) {
  std::vector<PairedCounts> all;
  for (const Contrast& contrast : test.contrasts) {
    PairedCounts& counts = all.emplace_back();
    const size_t a = IndexOf(table, contrast[0].arm), b = IndexOf(table, contrast[1].arm);
    for (int seed = 0; seed < table.seeds; ++seed) {
      const double first = outcomes[a * table.seeds + seed];
      const double second = outcomes[b * table.seeds + seed];
      if (std::isnan(first) || std::isnan(second)) continue;
      counts.first.push_back(first);
      counts.second.push_back(second);
    }
  }
  return all;
}

// Returns the control of a claim in these runs, or nothing if an arm of it has none.
std::optional<ControlResult> ControlOf(const ClaimTest& test,
                                       const OutcomeTable& table,
                                       const ClaimResult& claim) {
  if (test.control.empty()) return std::nullopt;
  const std::vector<Runs> runs = RunsOfArms({test.control}, table);
  ControlResult control;
  for (const Runs& arm : runs) {
    if (arm.count == 0) return std::nullopt;
    const bool all = arm.count >= 2 && arm.diverged == arm.count;
    if (all && test.diverged == Diverged::kMissing) control.arm_diverged = arm.arm;
  }
  ClaimTest alone = test;
  alone.contrasts = {test.control};
  ClaimResult result;
  TestContrasts(alone,
                OutcomesFor(alone, table, runs),
                table.seeds,
                WeightsOf(alone, table),
                claim.alpha,
                0,
                result);
  control.contrast = result.contrasts[0];
  const double low = control.contrast.low, high = control.contrast.high, m = test.margin;
  control.fails = !control.arm_diverged.empty() || low > m || high < -m;
  control.open = !control.fails && !(low > -m && high < m);
  return control;
}

// Returns why a claim on contrasts can have no verdict, or "" if it can.
std::string Obstacle(const ClaimTest& test,
                     const std::vector<Runs>& runs,
                     const ClaimResult& result) {
  if (test.diverged == Diverged::kMissing) {
    for (const Runs& arm : runs) {
      if (arm.diverged == 0) continue;
      return fmt::format("{} of {} runs of '{}' diverged", arm.diverged, arm.count, arm.arm);
    }
  }
  if (result.seeds == 1) return "one seed";
  for (const ContrastResult& contrast : result.contrasts) {
    if (contrast.freedom < 1) return "its arms share too few seeds";
  }
  return "";
}

void Decide(ClaimResult& result) {
  const double p = result.p = std::min(result.p_supported, result.p_contradicted);
  if (p > result.alpha) {
    result.verdict = Verdict::kInconclusive;
    result.reason = fmt::format("p = {:.2g}, above {:.2g}", p, result.alpha);
    return;
  }
  result.verdict = p == result.p_supported ? Verdict::kSupported : Verdict::kContradicted;
}

}  // namespace

std::string_view ToString(Verdict verdict) { return KeywordToString(kVerdicts, verdict); }
Verdict ParseVerdict(std::string_view text) { return ParseKeyword(kVerdicts, "verdict", text); }
std::string_view ToString(ClaimKind kind) { return KeywordToString(kKinds, kind); }
ClaimKind ParseClaimKind(std::string_view text) {
  return ParseKeyword(kKinds, "kind of claim", text);
}

Contrast Gap(std::string arm, std::string reference) {
  return {{std::move(arm), 1}, {std::move(reference), -1}};
}

std::vector<Contrast> Successive(const std::vector<std::string>& arms) {
  std::vector<Contrast> contrasts;
  for (size_t i = 1; i < arms.size(); ++i) contrasts.push_back(Gap(arms[i], arms[i - 1]));
  return contrasts;
}

ClaimResult TestClaim(const ClaimTest& test, const OutcomeTable& table, const TestLevel& level) {
  CheckTest(test);
  CheckTable(table);
  CheckLevel(level);
  const std::vector<Runs> runs = RunsOfArms(test.contrasts, table);
  ClaimResult result;
  result.alpha = level.alpha / level.looks;
  result.seeds = table.seeds;
  for (const Runs& arm : runs) {
    if (arm.count == 0) return NotTested(fmt::format("no run of '{}'", arm.arm));
    result.seeds = std::min(result.seeds, arm.count);
  }
  const double planned_alpha = level.plan ? result.alpha / level.primary : 0;
  if (test.kind == ClaimKind::kDivergence) {
    TestShare(test.margin, runs[0].diverged, runs[0].count, result.alpha, planned_alpha, result);
    Decide(result);
    return result;
  }
  const std::vector<double> outcomes = OutcomesFor(test, table, runs);
  if (test.kind == ClaimKind::kRatio) {
    TestRatios(test, CountsOf(test, table, outcomes), result.alpha, planned_alpha, result);
  } else {
    TestContrasts(
        test, outcomes, table.seeds, WeightsOf(test, table), result.alpha, planned_alpha, result);
  }
  result.control = ControlOf(test, table, result);
  const std::string obstacle = Obstacle(test, runs, result);
  if (!obstacle.empty()) result.p_supported = result.p_contradicted = 1;
  Decide(result);
  if (!obstacle.empty()) result.reason = obstacle;
  return result;
}

ClaimResult NotTested(std::string reason) {
  ClaimResult result;
  result.reason = std::move(reason);
  return result;
}

ClaimResult ExactResult(bool holds) {
  ClaimResult result;
  result.verdict = holds ? Verdict::kExactHolds : Verdict::kExactRefuted;
  return result;
}

std::string SeedsText(int seeds_to_decide) {
  if (seeds_to_decide == 0) return "unknown";
  if (seeds_to_decide > kMostSeeds) return fmt::format("more than {}", kMostSeeds);
  return fmt::format("{}", seeds_to_decide);
}

}  // namespace numsim::experiments
