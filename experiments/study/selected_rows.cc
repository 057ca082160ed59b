#include "experiments/study/selected_rows.h"

#include <algorithm>
#include <utility>

#include "experiments/runner/settings.h"
#include "experiments/study/assemble.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {
namespace {

std::string ValueOf(const Results& results, const Pick& pick) {
  return pick.of ? pick.of(results.settings) : pick.name;
}

const Pick* Find(const Picks& picks, const std::string& column) {
  const auto found = std::ranges::find(picks, column, &Pick::axis);
  return found == picks.end() ? nullptr : &*found;
}

// Returns the conditions, with those of `others` in place of theirs on the same columns.
Picks With(Picks picks, const Picks& others) {
  for (const Pick& other : others) {
    std::erase_if(picks, [&](const Pick& pick) { return pick.axis == other.axis; });
    picks.push_back(other);
  }
  return picks;
}

// Fills a reason with the values of conditions, {COLUMN}, and of options, {--NAME}.
std::string Reason(const Results& results, const std::string& pattern, const Picks& picks) {
  return Fill(pattern, [&](const std::string& name) {
    if (name.starts_with("--")) return results.settings.Get(name.substr(2));
    return ValueOf(results, *Find(picks, name));
  });
}

// Returns the text of an arm: the values of its conditions, and otherwise of the first of these rows.
std::string ArmTextOf(const Results& results,
                      const ClaimRow& claim,
                      const Picks& arm,
                      const Frame& rows) {
  return Fill(claim.on->arm, [&](const std::string& column) {
    const Pick* const pick = Find(arm, column);
    return pick == nullptr ? rows.Text(column) : ValueOf(results, *pick);
  });
}

using WeightedPicks = std::vector<std::pair<Picks, double>>;

// Returns the contrasts of a claim among these rows: its arms, or as many as belong to one contrast.
void AddContrasts(const Results& results,
                  const ClaimRow& claim,
                  const WeightedPicks& arms,
                  const Frame& rows,
                  std::vector<Contrast>& contrasts) {
  for (size_t i = 0; i < arms.size(); ++i) {
    const bool first = claim.arms_of_each == 0 ? i == 0 : i % claim.arms_of_each == 0;
    if (first) contrasts.emplace_back();
    contrasts.back().push_back({ArmTextOf(results, claim, arms[i].first, rows), arms[i].second});
  }
}

Evidence CompareRows(const Results& results,
                     const ClaimRow& claim,
                     const WeightedPicks& arms,
                     const Frame& rows) {
  Evidence evidence;
  evidence.outcomes = OutcomesOf(
      rows, [&](const Frame& row) { return ArmTextOf(results, claim, {}, row); }, claim.outcome);
  for (const Frame& group : rows.By(claim.on->each_of)) {
    AddContrasts(results, claim, arms, group, evidence.contrasts);
  }
  return evidence;
}

Evidence RowsAgainstNumber(const Results& results, const ClaimRow& claim, const Frame& rows) {
  SeedValues values;
  for (const Frame& seed : rows.By({"seed"})) values[seed.Text("seed")] = claim.outcome(seed);
  const double reference =
      claim.on->reference ? Cell(claim.on->reference(results.settings)).Number() : *claim.reference;
  return AgainstReference(ArmTextOf(results, claim, {}, rows), values, reference);
}

Frame RowsOfArms(const Results& results, const Frame& rows, const WeightedPicks& arms) {
  return rows.Where([&](const Frame& row) {
    return std::ranges::any_of(
        arms, [&](const auto& arm) { return !RowsWhere(results, row, arm.first).Empty(); });
  });
}

// Returns the evidence of arms among the rows that meet the conditions.
Evidence Judged(const Results& results,
                const ClaimRow& claim,
                const Picks& where,
                const WeightedPicks& arms) {
  const RowsOfClaim& on = *claim.on;
  Frame rows = RowsWhere(results, results.Of(on.table), where);
  if (rows.Empty()) return NotTestedBecause(Reason(results, on.missing, where));
  for (const auto& [arm, weight] : arms) {
    if (!RowsWhere(results, rows, arm).Empty()) continue;
    return NotTestedBecause(Reason(results, on.absent, With(where, arm)));
  }
  if (on.arms_alone) rows = RowsOfArms(results, rows, arms);
  if (on.unfit) {
    const std::string why = on.unfit(results, rows);
    if (!why.empty()) return NotTestedBecause(why);
  }
  if (on.rows) rows = on.rows(results, rows);
  if (on.judge) return on.judge(results, rows);
  Evidence evidence = arms.empty() ? RowsAgainstNumber(results, claim, rows)
                                   : CompareRows(results, claim, arms, rows);
  return on.bound ? on.bound(rows, std::move(evidence)) : evidence;
}

// Returns the mean of contrasts.
Contrast MeanOfContrasts(const std::vector<Contrast>& contrasts) {
  Contrast mean;
  for (const Contrast& contrast : contrasts) {
    for (const ContrastTerm& term : contrast) {
      mean.push_back({term.arm, term.weight / static_cast<double>(contrasts.size())});
    }
  }
  return mean;
}

// Returns the arms of the control: its own, or those of the claim under its conditions.
WeightedPicks ArmsOfControl(const ClaimRow& claim) {
  if (claim.control.arms.empty()) return claim.arms;
  return {{claim.control.arms[0], 1}, {claim.control.arms[1], -1}};
}

}  // namespace

Frame RowsWhere(const Results& results, const Frame& frame, const Picks& where) {
  Frame rows = frame;
  for (const Pick& pick : where) {
    const std::string value = ValueOf(results, pick);
    if (!value.ends_with('*')) {
      rows = rows.Where(pick.axis, value);
      continue;
    }
    const std::string begin = value.substr(0, value.size() - 1);
    rows = rows.Where([&](const Frame& row) { return row.Text(pick.axis).starts_with(begin); });
  }
  return rows;
}

Evidence EvidenceOfRows(const Results& results, const ClaimRow& claim) {
  const Picks& where = claim.on->where;
  Evidence evidence = Judged(results, claim, where, claim.arms);
  if (claim.control.arms.empty() && claim.control.where.empty()) return evidence;
  Evidence control = Judged(results, claim, With(where, claim.control.where), ArmsOfControl(claim));
  control.contrasts = {MeanOfContrasts(control.contrasts)};
  AddControl(control, evidence);
  return evidence;
}

}  // namespace numsim::experiments::study
