// The claims of [Fishman] about the channels of trained models, and the evidence of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/runner/settings.h"
#include "experiments/shared/special_values.h"
#include "experiments/swiglu_alignment/claim_parts.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

constexpr const char* kPapersScale =
    "The paper: one Llama2 with 7 billion parameters, whose weights align between 125 and 210 billion "
    "tokens. A run states its own size and length, and a verdict is about these.";

}  // namespace

ClaimSpec TrainingClaim(const std::string& name,
                        const char* item,
                        std::string statement,
                        std::string contrast,
                        bool primary) {
  ClaimSpec claim;
  claim.id = "swiglu-alignment/" + name;
  claim.items = {std::string("fishman/") + item};
  claim.statement = std::move(statement);
  claim.contrast = std::move(contrast);
  claim.scale = kPapersScale;
  claim.primary = primary;
  return claim;
}

Margin CosineMargin() {
  return {
      .value = 0.1,
      .unit = "of |cos|",
      .justification =
          "Independent vectors of width 32 to 64 have |cos| near 0.1; the paper's scatter plots go from a "
          "cloud to nearly a line."};
}

Frame RunsOfArm(const Tables& tables, const Arm& arm) {
  return Frame(tables.at(std::string(kRunsTable))).Where([&](const Frame& row) {
    return ArmOf(row) == arm;
  });
}

double UnlessRunDiverged(const Frame& run, RunOutcome outcome) {
  return run.Text("status") == "finished" ? outcome(run) : kInfinity;
}

double LateCos(const Frame& run) { return std::fabs(run.Number("cos_late")); }

namespace {

// Returns evidence about one outcome of the centre's runs, compared with a fixed value.
Evidence OfCentre(const Settings& settings,
                  const Tables& tables,
                  RunOutcome outcome,
                  double reference) {
  const Arm centre = Centre(settings);
  const Frame runs = RunsOfArm(tables, centre);
  SeedValues values;
  runs.ForEach(
      [&](const Frame& run) { values[run.Text("seed")] = UnlessRunDiverged(run, outcome); });
  if (values.empty()) return NotTestedBecause("was not trained: " + centre.Text());
  Evidence evidence = AgainstReference(centre.Text(), values, reference);
  evidence.parameters = runs.Number("parameters");
  return evidence;
}

double EarlyCos(const Frame& run) { return std::fabs(run.Number("cos_early")); }
double CosGrowth(const Frame& run) { return LateCos(run) - EarlyCos(run); }
double CosGrowthAboveOthers(const Frame& run) {
  return CosGrowth(run) - (run.Number("others_late") - run.Number("others_early"));
}
double GateNormGrowth(const Frame& run) {
  return Log(run.Number("w2_late") / run.Number("w2_early")) / Log(2);
}
double AboveOne(const Frame& run) { return 100 * run.Number("above_one"); }
double Slope(const Frame& run) { return run.Number("slope"); }
double KurtosisGrowth(const Frame& run) {
  return Log(run.Number("kurtosis_late") / run.Number("kurtosis_early")) / Log(2);
}
double Correlation(const Frame& run) { return run.Number("correlation"); }

// ---- the centre

constexpr const char* kLateMinusEarly =
    "at the end of the training minus that at the early record (after a fortieth of the steps, as 8 of 330 "
    "billion tokens), outlier channel, centre";

std::string CosText(const Tables& tables, const Settings& settings) {
  const Frame runs = RunsOfArm(tables, Centre(settings));
  size_t negative = 0;
  double early = 0, late = 0, others = 0;
  const auto count = static_cast<double>(runs.Size());
  runs.ForEach([&](const Frame& run) {
    negative += run.Number("cos_late") < 0 ? 1 : 0;
    early += EarlyCos(run) / count;
    late += LateCos(run) / count;
    others += run.Number("others_late") / count;
  });
  return fmt::format(
      "|cos| of the outlier channel is {:.3f} early and {:.3f} at the end (means), of all other channels {:.3f} "
      "at the end; cos is negative in {} of {} runs.",
      early,
      late,
      others,
      negative,
      runs.Size());
}

ClaimSpec OutlierAligns() {
  ClaimSpec claim = TrainingClaim(
      "outlier-aligns",
      "figure-2",
      "In a channel that generates outliers w1 and w2 are hardly correlated early in the training and highly "
      "correlated, positively or negatively, late (Figures 2 and 7).",
      std::string("|cos(w1, w2)| ") + kLateMinusEarly,
      true);
  claim.items.push_back("fishman/figure-7");
  claim.margin = CosineMargin();
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    Evidence evidence = OfCentre(settings, tables, CosGrowth, 0);
    if (evidence.not_tested.empty()) evidence.measured = CosText(tables, settings);
    return evidence;
  };
  return claim;
}

ClaimSpec MoreThanOthers() {
  ClaimSpec claim = TrainingClaim(
      "aligns-more-than-others",
      "figure-2",
      "Not in the paper, which shows single channels: the outlier channel aligns more than the other channels "
      "do. It is chosen by its activation at the end, so some excess is expected.",
      std::string("|cos(w1, w2)| ") + kLateMinusEarly +
          "; minus the same of the mean of all other channels",
      false);
  claim.margin = CosineMargin();
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return OfCentre(settings, tables, CosGrowthAboveOthers, 0);
  };
  return claim;
}

ClaimSpec GateNormGrows() {
  ClaimSpec claim = TrainingClaim("gate-norm-grows",
                                  "figure-2",
                                  "\"As training progresses, |w2| in the outlier channel grows.\"",
                                  std::string("log2 |w2| ") + kLateMinusEarly,
                                  true);
  claim.margin = {.value = 0.5,
                  .unit = "binades",
                  .justification = "Half a step of an exponent: a factor of 1.41."};
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return OfCentre(settings, tables, GateNormGrowth, 0);
  };
  return claim;
}

ClaimSpec MostTokensSaturate() {
  ClaimSpec claim = TrainingClaim(
      "most-tokens-above-1",
      "figure-9",
      "After training |w2.x| > 1 for most tokens in the outlier channel (Figure 9: about 99 %), so that its "
      "gate is hardly in the curved part of sigma.",
      "percentage of the tokens of a validation batch with |w2.x| > 1 in the outlier channel at the end, centre; "
      "compared with 50",
      true);
  claim.margin = {.value = 10,
                  .unit = "percentage points",
                  .justification = "A fifth of the way from a half to all; the paper is 49 above."};
  claim.papers_effect = 49;
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return OfCentre(settings, tables, AboveOne, 50);
  };
  return claim;
}

ClaimSpec NinetyNinePercent() {
  ClaimSpec claim = TrainingClaim(
      "99-percent-above-1",
      "figure-9",
      "|w2.x| > 1 for about 99 % of the tokens in the outlier channel.",
      "percentage of the tokens of a validation batch with |w2.x| > 1 in the outlier channel at the end, centre; "
      "compared with 99",
      false);
  claim.kind = ClaimKind::kEquivalence;
  claim.margin = {.value = 2,
                  .unit = "percentage points",
                  .justification = "\"~1 %\" below 1: up to three times as many."};
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return OfCentre(settings, tables, AboveOne, 99);
  };
  return claim;
}

ClaimSpec GateIsFlat() {
  ClaimSpec claim = TrainingClaim(
      "gate-is-flat",
      "figure-9",
      "In the outlier channel \"sigma'(w2.x) is very small for the overwhelming majority\" of the tokens, as "
      "Theorem 1 assumes.",
      "mean sigma'(w2.x) over the tokens of a validation batch in the outlier channel at the end, centre; compared "
      "with half of the largest possible value, 0.125",
      false);
  claim.side = -1;
  claim.margin = {
      .value = 0.05,
      .unit = "of sigma'",
      .justification = "A fifth of its largest value, 0.25; by Figure 9 the mean is about 0.01."};
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return OfCentre(settings, tables, Slope, 0.125);
  };
  return claim;
}

// Returns the mean sigma'(w2.x) of the outlier channel at the first record, from the early one on, at
// which its |cos| is halfway between the early record and the end. `points` are those of one run.
double SlopeHalfway(const Frame& points, double early_step) {
  const Frame from_early =
      points.Where([&](const Frame& row) { return row.Number("step") >= early_step; });
  const size_t last = from_early.Size() - 1;
  const double halfway = (from_early.Number("abs_cos") + from_early.Number(last, "abs_cos")) / 2;
  size_t i = 0;
  while (i < last && from_early.Number(i, "abs_cos") < halfway) ++i;
  return from_early.Number(i, "slope");
}

ClaimSpec SaturationComesFirst() {
  ClaimSpec claim = TrainingClaim(
      "saturation-comes-first",
      "figure-2",
      "|w2| grows until the gate is saturated, as the theorem assumes; \"thus\" the weights then begin to align: "
      "when |cos| is halfway, sigma' is already small.",
      "mean sigma'(w2.x) over the tokens of a validation batch in the outlier channel, at the first record at which "
      "|cos(w1, w2)| is halfway from the early record to the end, centre; compared with half of the largest "
      "possible value, 0.125",
      false);
  claim.side = -1;
  claim.margin = {
      .value = 0.05, .unit = "of sigma'", .justification = "A fifth of its largest value, 0.25."};
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const Arm centre = Centre(settings);
    const Frame points = Frame(tables.at(std::string(kPointsTable))).Where([&](const Frame& row) {
      return ArmOf(row) == centre;
    });
    SeedValues slopes;
    RunsOfArm(tables, centre).ForEach([&](const Frame& run) {
      const Frame own = points.Where("seed", run.Text("seed"));
      const bool counts = run.Text("status") == "finished" && !own.Empty();
      slopes[run.Text("seed")] = counts ? SlopeHalfway(own, run.Number("early_step")) : kInfinity;
    });
    if (slopes.empty()) return NotTestedBecause("was not trained: " + centre.Text());
    return AgainstReference(centre.Text(), slopes, 0.125);
  };
  return claim;
}

ClaimSpec KurtosisGrows() {
  ClaimSpec claim = TrainingClaim(
      "kurtosis-grows",
      "section-4.2",
      "Alignment \"causes the SwiGLU output magnitude to increase significantly during training, potentially "
      "resulting in outliers\": the kurtosis of the activations, which [FOG] monitors, grows.",
      "log2 of the kurtosis over channels, mean over tokens, of the outlier's block, at the end minus at the "
      "early record, centre",
      false);
  claim.margin = {.value = 1, .unit = "binades", .justification = "A factor of 2."};
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return OfCentre(settings, tables, KurtosisGrowth, 0);
  };
  return claim;
}

ClaimSpec AlignedChannelsAreLarge() {
  ClaimSpec claim = TrainingClaim(
      "aligned-channels-are-large",
      "section-4.1",
      "SwiGLU \"can reach much larger values if w1 and w2 are sufficiently aligned\": over the channels of a "
      "block, alignment goes with large activations.",
      "correlation of |cos(w1, w2)| with the logarithm of the channel's largest activation over the channels of "
      "the outlier's block at the end, centre",
      false);
  claim.margin = {.value = 0.2,
                  .unit = "of the correlation",
                  .justification = "4 % of the variance of the logarithm."};
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return OfCentre(settings, tables, Correlation, 0);
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> CentreClaims() {
  return {OutlierAligns(),
          GateNormGrows(),
          MostTokensSaturate(),
          MoreThanOthers(),
          NinetyNinePercent(),
          GateIsFlat(),
          SaturationComesFirst(),
          KurtosisGrows(),
          AlignedChannelsAreLarge()};
}

std::vector<ClaimSpec> Claims() {
  std::vector<ClaimSpec> claims = ExactClaims();
  for (const auto& of_subject : {CentreClaims(), AxisClaims()}) {
    claims.insert(claims.end(), of_subject.begin(), of_subject.end());
  }
  claims.push_back(Fp8Diverges());
  return claims;
}

std::string Notes(const Settings&, const Tables& tables) {
  const Frame runs = tables.at(std::string(kRunsTable));
  const size_t diverged = runs.Size() - runs.Where("status", "finished").Size();
  return fmt::format(
      "{} trainings, {} of them diverged.\n"
      "The trainings decay weights as AdamW does, not by the l2 term of Equation 1, which Adam would divide by "
      "the root of its second moment.",
      runs.Size(),
      diverged);
}

}  // namespace numsim::experiments::swiglu_alignment
