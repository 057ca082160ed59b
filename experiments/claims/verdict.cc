#include "experiments/claims/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/claims/claim_checks.h"
#include "experiments/claims/contrast_statistics.h"
#include "experiments/claims/power.h"
#include "experiments/claims/share_statistics.h"
#include "experiments/claims/two_way.h"
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

// Returns the arms that have a weight in the claim, each once.
std::vector<Runs> RunsOfClaim(const ClaimTest& test, const OutcomeTable& table) {
  std::vector<Runs> all;
  for (const Contrast& contrast : test.contrasts) {
    for (const ContrastTerm& term : contrast) {
      const bool known =
          std::any_of(all.begin(), all.end(), [&](const Runs& r) { return r.arm == term.arm; });
      if (!known) all.push_back(RunsOf(table, term.arm));
    }
  }
  return all;
}

// Returns the outcomes for the fit, in which a diverged run of the claim's arms is what the rule
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

std::vector<std::vector<double>> WeightsOf(const ClaimTest& test, const OutcomeTable& table) {
  std::vector<std::vector<double>> rows;
  for (const Contrast& contrast : test.contrasts) {
    rows.emplace_back(table.arms.size(), 0.);
    for (const ContrastTerm& term : contrast) rows.back()[IndexOf(table, term.arm)] += term.weight;
  }
  return rows;
}

// Returns why a claim on contrasts can have no verdict, or "" if it can.
std::string Obstacle(const ClaimTest& test,
                     const TwoWayFit& fit,
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
    if (std::isnan(contrast.value)) return "its arms share too few seeds";
  }
  return fit.Freedom() == 0 ? "no residual degrees of freedom" : "";
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
  const std::vector<Runs> runs = RunsOfClaim(test, table);
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
  const TwoWayFit fit(
      OutcomesFor(test, table, runs), static_cast<int>(table.arms.size()), table.seeds);
  TestContrasts(test, fit, WeightsOf(test, table), result.alpha, planned_alpha, result);
  const std::string obstacle = Obstacle(test, fit, runs, result);
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
