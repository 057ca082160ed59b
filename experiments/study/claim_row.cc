#include "experiments/study/claim_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/study/selected_rows.h"
#include "experiments/study/study.h"
#include "experiments/study/study_rates.h"

namespace numsim::experiments::study {
namespace {

std::vector<ArmContrast> ContrastsOf(const Results& results, const ClaimRow& claim) {
  std::vector<ArmContrast> contrasts;
  for (const auto& [picks, weight] : claim.arms) {
    const bool full = !contrasts.empty() && contrasts.back().size() == claim.arms_of_each;
    if (contrasts.empty() || full) contrasts.emplace_back();
    contrasts.back().emplace_back(results.ArmOf(picks), weight);
  }
  return contrasts;
}

std::vector<Arm> ArmsOf(const Results& results, const ClaimRow& claim) {
  std::vector<Arm> arms;
  for (const auto& [picks, weight] : claim.arms) arms.push_back(results.ArmOf(picks));
  return arms;
}

// Returns whether a claim says what it compares: its arms, or the centre if it has none. Where an axis has
// no value by itself, the study's own comparison chooses the arms.
bool HasOwnArms(const Study& study, const ClaimRow& claim) {
  if (!Trains(study)) return false;
  if (study.centre) return true;
  return !claim.arms.empty() &&
         std::ranges::none_of(study.axes, [](const Axis& axis) { return axis.baseline.empty(); });
}

std::string TextOf(const Results& results, const Arm& arm) {
  return ArmText(results.study, arm, results.study.arm_text);
}

Evidence NotTrained(const Results& results, const Arm& arm) {
  return NotTestedBecause("was not trained: " + TextOf(results, arm));
}

// Returns the parameters of the largest model among these arms; 0 if the table of trainings does not say.
double LargestModel(const Results& results, const std::vector<ArmContrast>& contrasts) {
  const Table& table = results.tables.at(results.study.runs);
  if (std::ranges::count(table.columns, "parameters") == 0) return 0;
  const Frame runs = results.Of(results.study.runs);
  double largest = 0;
  for (const ArmContrast& contrast : contrasts) {
    for (const auto& [arm, weight] : contrast) {
      results.OfArm(runs, arm).ForEach(
          [&](const Frame& run) { largest = std::max(largest, run.Number("parameters")); });
    }
  }
  return largest;
}

Evidence Compare(const Results& results,
                 const ClaimRow& claim,
                 const std::vector<ArmContrast>& contrasts) {
  const Claims& common = results.study.common;
  if (common.compare) return common.compare(results, claim, contrasts);
  const Frame runs = results.Of(results.study.runs);
  for (const ArmContrast& contrast : contrasts) {
    for (const auto& [arm, weight] : contrast) {
      if (results.OfArm(runs, arm).Empty()) return NotTrained(results, arm);
    }
  }
  Evidence evidence =
      CompareArms(results, runs, contrasts, claim.outcome ? claim.outcome : common.outcome);
  evidence.parameters = LargestModel(results, contrasts);
  return evidence;
}

// Returns by how much the loss of the baselines of contrasts is below that of a guess, which is all that
// they can lose; 0 if that is not known, or if the claim is about something else.
double PossibleLoss(const Results& results,
                    const ClaimRow& claim,
                    const std::vector<ArmContrast>& contrasts) {
  const Margin& margin = claim.margin ? *claim.margin : results.study.common.margin;
  const Table& table = results.tables.at(results.study.runs);
  const bool known = std::ranges::count(table.columns, "chance_loss") > 0;
  if (!known || claim.side < 0 || !margin.unit.starts_with("nats")) return 0;
  const Frame runs = results.Of(results.study.runs);
  double possible = 0;
  for (const ArmContrast& contrast : contrasts) {
    for (const auto& [arm, weight] : contrast) {
      const Frame baseline = results.OfArm(runs, arm);
      if (weight > 0 || baseline.Empty()) continue;
      const double here = baseline.Mean("chance_loss") - baseline.Mean("valid_loss");
      if (!(here > 0)) continue;
      possible = possible == 0 ? here : std::min(possible, here);
    }
  }
  return possible;
}

// Lowers Evidence::possible to what lies between the two arms of ClaimRow::possible. Without one of them
// the run does not test the claim: its margin could be larger than anything that could be seen.
void HeedPossibleArms(const Results& results, const ClaimRow& claim, Evidence& evidence) {
  if (claim.possible.empty() || !evidence.not_tested.empty()) return;
  const auto& outcome = claim.outcome ? claim.outcome : results.study.common.outcome;
  double possible = 0;
  double sign = 1;
  for (const Picks& picks : claim.possible) {
    const Arm arm = results.ArmOf(picks);
    const Frame runs = results.OfArm(results.Of(results.study.runs), arm);
    if (runs.Empty()) {
      evidence = NotTrained(results, arm);
      return;
    }
    double sum = 0;
    runs.ForEach([&](const Frame& run) { sum += outcome(run); });
    possible += sign * sum / static_cast<double>(runs.Size());
    sign = -1;
  }
  constexpr double kNothing = 1e-300;  // 0 would say that it is not known
  possible = std::max(possible, kNothing);
  evidence.possible = evidence.possible == 0 ? possible : std::min(evidence.possible, possible);
}

// Compares the arms of a claim and those of its control, which a run may leave out.
Evidence CompareWithControl(const Results& results,
                            const ClaimRow& claim,
                            std::vector<ArmContrast> contrasts) {
  if (claim.control.arms.empty()) return Compare(results, claim, contrasts);
  ArmContrast& control = contrasts.emplace_back();
  double weight = 1;
  for (const Picks& picks : claim.control.arms) {
    control.emplace_back(results.ArmOf(picks), weight);
    weight = -1;
  }
  Evidence evidence = Compare(results, claim, contrasts);
  if (evidence.not_tested.empty()) {
    evidence.control = std::move(evidence.contrasts.back());
    evidence.contrasts.pop_back();
    return evidence;
  }
  contrasts.pop_back();
  const std::string reason = std::move(evidence.not_tested);
  evidence = Compare(results, claim, contrasts);
  evidence.no_control = fmt::format("the control {}", reason);
  return evidence;
}

Evidence EvidenceOf(const Results& results, const ClaimRow& claim) {
  if (claim.obstacle) {
    const std::string why = claim.obstacle(results);
    if (!why.empty()) return NotTestedBecause(why);
  }
  if (claim.on) return EvidenceOfRows(results, claim);
  std::vector<Arm> named;
  for (const auto& [picks, weight] : claim.arms) named.push_back(results.ArmOf(picks));
  const std::string untuned = RateObstacle(results.study, results.settings, named);
  if (!untuned.empty()) return NotTestedBecause(untuned);
  if (claim.evidence) return claim.evidence(results);
  if (claim.reference) {
    const auto& outcome = claim.outcome ? claim.outcome : results.study.common.outcome;
    const Arm arm = results.ArmOf(claim.arms.front().first);
    Evidence evidence = AgainstNumber(results, arm, outcome, *claim.reference);
    evidence.parameters = LargestModel(results, {{{arm, 1}}});
    return evidence;
  }
  const std::vector<ArmContrast> contrasts = ContrastsOf(results, claim);
  Evidence evidence = CompareWithControl(results, claim, contrasts);
  evidence.possible = PossibleLoss(results, claim, contrasts);
  HeedPossibleArms(results, claim, evidence);
  return evidence;
}

}  // namespace

Frame Results::OfArm(const Frame& frame, const Arm& arm) const {
  return frame.Where([&](const Frame& row) {
    for (size_t i = 0; i < arm.size(); ++i) {
      if (row.Text(study.axes[i].name) != arm[i]) return false;
    }
    return true;
  });
}

Arm Results::ArmOf(const Picks& picks) const {
  Arm arm;
  if (study.centre) {
    arm = study.centre(settings);
  } else {
    for (const Axis& axis : study.axes) arm.push_back(axis.baseline);
  }
  for (const Pick& pick : picks) {
    arm.at(NumberOf(study, pick.axis)) = pick.of ? pick.of(settings) : pick.name;
  }
  return arm;
}

Evidence CompareArms(const Results& results,
                     const Frame& runs,
                     const std::vector<ArmContrast>& contrasts,
                     const std::function<double(const Frame& run)>& outcome) {
  Evidence evidence;
  evidence.outcomes = OutcomesOf(
      runs,
      [&](const Frame& run) {
        Arm arm;
        for (const Axis& axis : results.study.axes) arm.push_back(run.Text(axis.name));
        return TextOf(results, arm);
      },
      outcome);
  for (const ArmContrast& arms : contrasts) {
    Contrast& contrast = evidence.contrasts.emplace_back();
    for (const auto& [arm, weight] : arms) contrast.push_back({TextOf(results, arm), weight});
  }
  return evidence;
}

Evidence AgainstNumber(const Results& results,
                       const Arm& arm,
                       const std::function<double(const Frame& run)>& outcome,
                       double reference) {
  SeedValues values;
  results.OfArm(results.Of(results.study.runs), arm).ForEach([&](const Frame& run) {
    values[run.Text("seed")] = outcome(run);
  });
  if (values.empty()) return NotTrained(results, arm);
  return AgainstReference(TextOf(results, arm), values, reference);
}

std::vector<ClaimSpec> ClaimsOf(const std::shared_ptr<const Study>& study) {
  std::vector<ClaimSpec> claims;
  for (const ClaimRow& row : study->claims) {
    ClaimSpec& claim = claims.emplace_back();
    claim.id = study->name + "/" + row.name;
    claim.items = row.items.empty() ? study->common.items : row.items;
    claim.statement = row.statement;
    claim.kind = row.kind;
    claim.contrast = row.contrast;
    claim.control = row.control.text;
    claim.no_control = row.control.none;
    claim.side = row.side;
    // An exact claim is decided without a margin: it has none but its own.
    const bool exact = row.kind == ClaimKind::kExact;
    claim.margin = row.margin.value_or(exact ? Margin() : study->common.margin);
    claim.diverged = row.diverged.value_or(study->common.diverged);
    claim.papers_effect = row.papers_effect;
    claim.scale = row.scale.empty() ? study->common.scale : row.scale;
    claim.primary = row.primary;
    claim.evidence = [study, row](const Settings& settings, const Tables& tables) {
      return EvidenceOf({*study, settings, tables}, row);
    };
    if (!HasOwnArms(*study, row)) continue;
    claim.trained = [study, row](const Settings& settings) {
      return TrainedScaleOf(*study, settings, ArmsOf({*study, settings, Tables()}, row));
    };
  }
  return claims;
}

}  // namespace numsim::experiments::study
