#include "experiments/study/claim_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/study/study.h"

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

Evidence EvidenceOf(const Results& results, const ClaimRow& claim) {
  if (claim.obstacle) {
    const std::string why = claim.obstacle(results);
    if (!why.empty()) return NotTestedBecause(why);
  }
  if (claim.evidence) return claim.evidence(results);
  const Claims& common = results.study.common;
  const auto& outcome = claim.outcome ? claim.outcome : common.outcome;
  if (claim.reference) {
    const Arm arm = results.ArmOf(claim.arms.front().first);
    return AgainstNumber(results, arm, outcome, *claim.reference);
  }
  const std::vector<ArmContrast> contrasts = ContrastsOf(results, claim);
  if (common.compare) return common.compare(results, claim, contrasts);
  const Frame runs = results.Of(results.study.runs);
  std::vector<Arm> arms;
  for (const ArmContrast& contrast : contrasts) {
    for (const auto& [arm, weight] : contrast) {
      if (results.OfArm(runs, arm).Empty()) return NotTrained(results, arm);
      arms.push_back(arm);
    }
  }
  const Frame pool = runs.Where([&](const Frame& run) {
    return common.pool_all || std::ranges::any_of(arms, [&](const Arm& arm) {
             return !results.OfArm(run, arm).Empty();
           });
  });
  return CompareArms(results, pool, contrasts, outcome);
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
                     const Frame& pool,
                     const std::vector<ArmContrast>& contrasts,
                     const std::function<double(const Frame& run)>& outcome) {
  Evidence evidence;
  evidence.outcomes = OutcomesOf(
      pool,
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
