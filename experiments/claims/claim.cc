#include "experiments/claims/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/claims/family.h"
#include "experiments/claims/paired.h"
#include "experiments/claims/run_settings.h"
#include "experiments/claims/student_t.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

std::string ArmName(const Frame& arm, std::initializer_list<std::string_view> keys) {
  std::string name;
  for (const std::string_view key : keys) {
    if (!name.empty()) name += " / ";
    name += arm.Text(key);
  }
  return name;
}

ClaimResult ResultOf(const ClaimSpec& spec,
                     const Evidence& evidence,
                     double margin,
                     const TestLevel& level) {
  if (!evidence.not_tested.empty()) return NotTested(evidence.not_tested);
  if (spec.kind == ClaimKind::kExact) {
    NUMSIM_CHECK(evidence.exact, "{}: no answer", spec.id);
    return ExactResult(*evidence.exact);
  }
  const ClaimTest test{.kind = spec.kind,
                       .contrasts = evidence.contrasts,
                       .side = spec.side,
                       .margin = margin,
                       .control = evidence.control,
                       .diverged = spec.diverged,
                       .diverged_value = evidence.diverged_value};
  return TestClaim(test, evidence.outcomes, level);
}

// Returns true if the verdict also holds for every contrast beyond its bound.
bool BoundCarries(const ClaimSpec& spec, int bound, const ClaimResult& result) {
  const bool supported = result.verdict == Verdict::kSupported;
  const bool contradicted = result.verdict == Verdict::kContradicted;
  switch (spec.kind) {
    case ClaimKind::kDifference:
    case ClaimKind::kRatio:
      return (supported && bound == spec.side) || (contradicted && bound == -spec.side);
    case ClaimKind::kOrder:
      return (supported && bound == 1) || (contradicted && bound == -1);
    case ClaimKind::kEquivalence:
      return contradicted && std::any_of(result.contrasts.begin(),
                                         result.contrasts.end(),
                                         [&](const ContrastResult& contrast) {
                                           return bound * contrast.value > 0;
                                         });
    default:
      return false;
  }
}

// Replaces a verdict on bounds that they cannot carry.
void HeedBound(JudgedClaim& claim) {
  const int bound = claim.evidence.bound;
  if (bound == 0 || claim.result.verdict == Verdict::kNotTested) return;
  if (!BoundCarries(*claim.spec, bound, claim.result)) {
    claim.result = NotTested(claim.evidence.bound_reason);
  }
}

// Returns why the run says nothing about an equivalence: nothing is seen to fail in it. "" if it does.
std::string WhyNoControl(const JudgedClaim& claim) {
  if (claim.result.control) {
    return claim.result.control->fails ? "" : fmt::format("the control {}", ControlText(claim));
  }
  if (!claim.evidence.no_control.empty()) return claim.evidence.no_control;
  if (!claim.spec->no_control.empty()) {
    return "the claim names no control: " + claim.spec->no_control;
  }
  return "the claim names no control";
}

// An equivalence that is not contradicted needs a control that is seen to fail. Its numbers stay.
void HeedControl(JudgedClaim& claim) {
  if (claim.spec->kind != ClaimKind::kEquivalence) return;
  ClaimResult& result = claim.result;
  if (result.verdict != Verdict::kSupported && result.verdict != Verdict::kInconclusive) return;
  const std::string why = WhyNoControl(claim);
  if (why.empty()) return;
  result.verdict = Verdict::kNotTested;
  result.reason = std::string(kNoEvidence) + why;
}

// Leaves a claim out whose margin is more than half of what its baseline can lose.
void HeedPossible(const ClaimSpec& claim, double margin, Evidence& evidence) {
  if (evidence.possible == 0 || !evidence.not_tested.empty()) return;
  if (margin <= evidence.possible / 2) return;
  evidence.not_tested =
      fmt::format("{}the baseline allows an effect of {:.3g} {}, and the margin is {:g}",
                  kOutOfReach,
                  evidence.possible,
                  claim.margin.unit,
                  margin);
  evidence.left_out = true;
}

// Thrown by Tables::at for a table that --rows does not give.
struct TableNotGiven {
  std::string name;
};

Evidence EvidenceOf(const ClaimSpec& spec, const Settings& settings, const Tables& given) {
  try {
    return spec.evidence(settings, given);
  } catch (const TableNotGiven& table) {
    // It keeps its place in Holm's family: a table that is left out must not ease other claims.
    Evidence none = NotTestedBecause(fmt::format("--rows does not give the table {}", table.name));
    none.left_out = true;
    return none;
  }
}

}  // namespace

std::string NameOf(const Contrast& contrast) {
  std::string name;
  for (const ContrastTerm& term : contrast) {
    const bool first = name.empty();
    const double size = std::abs(term.weight);
    name += term.weight < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
    name += size == 1 ? term.arm : fmt::format("{:g} {}", size, term.arm);
  }
  return name;
}

std::string IntervalText(const ContrastResult& contrast, double confidence) {
  if (std::isnan(contrast.low)) return "no interval";
  return fmt::format("[{:.4g}, {:.4g}] at {:g} %", contrast.low, contrast.high, 100 * confidence);
}

std::string ControlText(const JudgedClaim& claim) {
  const ControlResult& control = *claim.result.control;
  const std::string name = fmt::format(
      "{} is {}seen to fail: ", NameOf(claim.evidence.control), control.fails ? "" : "not ");
  if (!control.arm_diverged.empty()) {
    return name + fmt::format("all runs of '{}' diverged", control.arm_diverged);
  }
  return name + fmt::format("{:.4g} {}, {}, margin {:g}",
                            control.contrast.value,
                            claim.spec->margin.unit,
                            IntervalText(control.contrast, claim.result.confidence),
                            claim.margin);
}

const Table& Tables::at(const std::string& name) const {
  const auto found = find(name);
  if (found == end()) {
    if (not_given.contains(name)) throw TableNotGiven{name};
    throw Error::Format(
        "table {}.csv is missing{}", name, directory.empty() ? "" : " in " + directory);
  }
  return found->second;
}

Table& Tables::at(const std::string& name) {
  return const_cast<Table&>(static_cast<const Tables&>(*this).at(name));
}

double Margin::At(double parameters) const {
  double margin = value;
  for (const auto& [from, smaller] : from_parameters) {
    if (parameters >= from) margin = smaller;
  }
  return margin;
}

std::string Margin::Text() const {
  std::string text = fmt::format("{:g} {}", value, unit);
  for (const auto& [from, smaller] : from_parameters) {
    text += fmt::format(", {:g} from {:g} million parameters on", smaller, from / 1e6);
  }
  return text;
}

Margin LossMargin(std::string unit) {
  return {.value = 0.02,
          .unit = std::move(unit),
          .justification =
              "The residual of small trainings over seeds is 0.01 to 0.02 nats; "
              "larger models are tuned for smaller differences.",
          .from_parameters = {{1e6, 0.01}, {80e6, 0.005}}};
}

Evidence NotTestedBecause(std::string reason) { return {.not_tested = std::move(reason)}; }

Evidence LeftOutBecause(const std::string& reason) {
  return {.not_tested = std::string(kOutOfReach) + reason, .left_out = true};
}

OutcomeTable OutcomesOf(const Frame& frame,
                        std::initializer_list<std::string_view> keys,
                        const std::function<double(const Frame& row)>& outcome) {
  return OutcomesOf(
      frame, [keys](const Frame& row) { return ArmName(row, keys); }, outcome);
}

OutcomeTable OutcomesOf(const Frame& frame,
                        const std::function<std::string(const Frame& row)>& arm_of,
                        const std::function<double(const Frame& row)>& outcome) {
  const std::vector<std::string> seeds = frame.Distinct("seed");
  OutcomeTable table{.arms = {}, .seeds = static_cast<int>(seeds.size()), .values = {}};
  std::vector<bool> taken;
  frame.ForEach([&](const Frame& row) {
    const std::string name = arm_of(row);
    const auto arm = std::find(table.arms.begin(), table.arms.end(), name) - table.arms.begin();
    if (static_cast<size_t>(arm) == table.arms.size()) {
      table.arms.push_back(name);
      table.values.resize(table.arms.size() * seeds.size(), std::nan(""));
      taken.resize(table.values.size());
    }
    const auto seed = std::find(seeds.begin(), seeds.end(), row.Text("seed"));
    const size_t run =
        static_cast<size_t>(arm) * seeds.size() + static_cast<size_t>(seed - seeds.begin());
    if (taken[run]) throw Error::Format("arm {}: seed {} has two outcomes", name, *seed);
    taken[run] = true;
    table.values[run] = outcome(row);
  });
  return table;
}

Estimate GapOf(const OutcomeTable& outcomes, std::string_view arm, std::string_view baseline) {
  if (arm == baseline) return {0, 0, 0};
  std::vector<double> weights;
  for (const std::string& name : outcomes.arms) {
    weights.push_back((name == arm ? 1.0 : 0.0) - (name == baseline ? 1.0 : 0.0));
  }
  const ContrastEstimate gap = EstimateContrast(outcomes.values, outcomes.seeds, weights);
  const double half =
      gap.freedom > 0 ? StudentQuantile(0.975, gap.freedom) * gap.standard_error : std::nan("");
  return {gap.value, gap.value - half, gap.value + half};
}

Evidence AgainstReference(std::string arm, const SeedValues& values, double reference) {
  Evidence evidence;
  evidence.outcomes.arms = {arm, "reference"};
  evidence.outcomes.seeds = static_cast<int>(values.size());
  for (const auto& [seed, value] : values) evidence.outcomes.values.push_back(value);
  evidence.outcomes.values.resize(2 * values.size(), reference);
  evidence.contrasts = {Gap(std::move(arm), "reference")};
  return evidence;
}

Evidence AgainstReference(std::string arm,
                          const std::map<std::string, Range>& of_seed,
                          double reference,
                          std::string reason) {
  SeedValues low, high;
  bool known = true, has_low = true, has_high = true;
  for (const auto& [seed, range] : of_seed) {
    low[seed] = range.low;
    high[seed] = range.high;
    known = known && range.low == range.high;
    has_low = has_low && !std::isinf(range.low);
    has_high = has_high && !std::isinf(range.high);
  }
  if (known) return AgainstReference(std::move(arm), low, reference);
  if (!has_low && !has_high) return NotTestedBecause(std::move(reason));
  Evidence evidence = AgainstReference(
      arm + (has_high ? " (at most)" : " (at least)"), has_high ? high : low, reference);
  evidence.bound = has_high ? -1 : 1;
  evidence.bound_reason = std::move(reason);
  return evidence;
}

void CheckMargin(const ClaimSpec& claim) {
  const double effect = std::abs(claim.papers_effect);
  if (effect == 0 || claim.margin.value <= effect / 2) return;
  throw Error::Format("{}: the margin of {:g} is more than half of the paper's effect of {:g}",
                      claim.id,
                      claim.margin.value,
                      effect);
}

void AddControl(const Evidence& control, Evidence& evidence) {
  if (!evidence.not_tested.empty()) return;
  if (!control.not_tested.empty()) {
    evidence.no_control = "the control: " + control.not_tested;
    return;
  }
  const OutcomeTable own = evidence.outcomes, &others = control.outcomes;
  OutcomeTable& all = evidence.outcomes;
  all.seeds = std::max(own.seeds, others.seeds);
  all.values.clear();
  const auto append = [&](const OutcomeTable& table, size_t arm) {
    const auto first = table.values.begin() + static_cast<ptrdiff_t>(arm) * table.seeds;
    all.values.insert(all.values.end(), first, first + table.seeds);
    all.values.resize(all.values.size() + all.seeds - table.seeds, std::nan(""));
  };
  for (size_t arm = 0; arm < own.arms.size(); ++arm) append(own, arm);
  evidence.control = control.contrasts.at(0);
  for (ContrastTerm& term : evidence.control) {
    append(others, std::ranges::find(others.arms, term.arm) - others.arms.begin());
    const bool taken = std::ranges::count(own.arms, term.arm) > 0;
    all.arms.push_back(taken ? term.arm + " of the control" : term.arm);
    term.arm = all.arms.back();
  }
}

std::vector<JudgedClaim> Judge(const std::vector<ClaimSpec>& claims,
                               const Settings& settings,
                               const Tables& tables) {
  // The family of Holm's correction: a claim whose arms the run does not train is not in it.
  const auto in_family = [](const JudgedClaim& claim) {
    return claim.spec->primary && claim.spec->kind != ClaimKind::kExact &&
           (claim.evidence.not_tested.empty() || claim.evidence.left_out);
  };
  Tables only_given;
  if (!tables.not_given.empty()) only_given = tables;
  for (const std::string& name : tables.not_given) only_given.erase(name);
  const Tables& given = tables.not_given.empty() ? tables : only_given;
  std::vector<JudgedClaim> judged;
  for (const ClaimSpec& spec : claims) {
    JudgedClaim& claim = judged.emplace_back();
    claim.spec = &spec;
    claim.evidence = EvidenceOf(spec, settings, given);
    claim.margin = spec.margin.At(claim.evidence.parameters);
    CheckMargin(spec);
    HeedPossible(spec, claim.margin, claim.evidence);
  }
  const auto family = std::count_if(judged.begin(), judged.end(), in_family);
  const TestLevel level{.looks = settings.looks,
                        .primary = std::max<int>(1, static_cast<int>(family))};
  std::vector<ClaimResult> primary;
  size_t left_out = 0;
  for (JudgedClaim& claim : judged) {
    claim.result = ResultOf(*claim.spec, claim.evidence, claim.margin, level);
    if (in_family(claim)) primary.push_back(claim.result);
    left_out += in_family(claim) && claim.evidence.left_out ? 1 : 0;
  }
  JudgeTogether(primary, left_out);
  auto next = primary.begin();
  for (JudgedClaim& claim : judged) {
    if (in_family(claim)) claim.result = *next++;
    HeedBound(claim);
    HeedControl(claim);
    const bool tested = claim.result.verdict != Verdict::kNotTested;
    if (tested && claim.spec->trained) claim.trained = claim.spec->trained(settings);
  }
  return judged;
}

TrainedScale ScaleOf(const JudgedClaim& claim, const RunScale& run) {
  if (claim.spec->kind == ClaimKind::kExact) return {};
  return claim.trained.value_or(run.trained);
}

bool AllDecided(const std::vector<JudgedClaim>& claims) {
  return std::none_of(claims.begin(), claims.end(), [](const JudgedClaim& claim) {
    const ClaimResult& result = claim.result;
    const bool waits =
        result.verdict == Verdict::kNotTested && result.control && result.control->open;
    return claim.spec->primary && (waits || result.verdict == Verdict::kInconclusive);
  });
}

}  // namespace numsim::experiments
