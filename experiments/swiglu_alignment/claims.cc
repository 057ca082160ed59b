// The claims of [Fishman] about the channels of trained models, and the evidence of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/core/settings.h"
#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

constexpr const char* kPapersScale =
    "The paper: one Llama2 with 7 billion parameters, whose weights align between 125 and 210 billion "
    "tokens. A run states its own size and length, and a verdict is about these.";
constexpr double kPapersTokens = 2e11, kPapersParameters = 6e9;

using RunOutcome = double (*)(const Frame& run);

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

Frame RunsTable(const Tables& tables) { return tables.at(std::string(kRunsTable)); }

Frame RunsOfArm(const Tables& tables, const Arm& arm) {
  return RunsTable(tables).Where([&](const Frame& row) { return ArmOf(row) == arm; });
}

// Returns an outcome, or infinity, which stands for a diverged run.
double UnlessRunDiverged(const Frame& run, RunOutcome outcome) {
  return run.Text("status") == "finished" ? outcome(run) : kInfinity;
}

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

// Returns evidence about the outcome of two arms, with the residual of all arms.
Evidence BetweenArms(const Tables& tables, const Arm& arm, const Arm& other, RunOutcome outcome) {
  const Frame runs = RunsTable(tables);
  for (const Arm& one : {arm, other}) {
    if (RunsOfArm(tables, one).Empty()) return NotTestedBecause("was not trained: " + one.Text());
  }
  Evidence evidence;
  evidence.outcomes =
      OutcomesOf(runs, kArmKey, [&](const Frame& run) { return UnlessRunDiverged(run, outcome); });
  // The contrast names arms by their text, the table by the cells.
  size_t i = 0;
  for (const Frame& cells : runs.By(kArmKey)) evidence.outcomes.arms[i++] = ArmOf(cells).Text();
  evidence.contrasts = {Gap(arm.Text(), other.Text())};
  evidence.parameters = RunsOfArm(tables, arm).Number("parameters");
  return evidence;
}

double LateCos(const Frame& run) { return std::fabs(run.Number("cos_late")); }
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

// ---- the axes

// Returns the arms of the centre's axis `field`, from the least to the largest value.
std::vector<Arm> AlongAxis(const Settings& settings, std::string Arm::*field) {
  const Arm centre = Centre(settings);
  std::vector<Arm> arms;
  for (const Arm& arm : ArmsOf(settings)) {
    Arm at_centre = arm;
    at_centre.*field = centre.*field;
    if (at_centre == centre) arms.push_back(arm);
  }
  std::sort(arms.begin(), arms.end(), [&](const Arm& a, const Arm& b) {
    return std::stod(a.*field) < std::stod(b.*field);
  });
  return arms;
}

// A claim that the last arm of an axis is more aligned than the first.
ClaimSpec AxisClaim(const char* name,
                    const char* item,
                    const char* statement,
                    const char* axis,
                    std::string Arm::*field,
                    const char* option) {
  ClaimSpec claim = TrainingClaim(
      name,
      item,
      statement,
      fmt::format(
          "|cos(w1, w2)| of the outlier channel at the end, at the largest {} minus at the least",
          axis),
      false);
  claim.margin = CosineMargin();
  claim.evidence = [field, option](const Settings& settings, const Tables& tables) {
    const std::vector<Arm> arms = AlongAxis(settings, field);
    if (arms.size() < 2) return NotTestedBecause(fmt::format("there is one (--{})", option));
    return BetweenArms(tables, arms.back(), arms.front(), LateCos);
  };
  return claim;
}

// Returns by which part of e weight decay alone shrinks the weights over the training of an arm, roughly:
// weight decay times the sum of the learning rates.
double DecayTimes(const Settings& settings, const Arm& arm) {
  const double mean_rate = std::stod(arm.lr) * (1 + settings.GetDouble("final-lr", 0, 1)) / 2;
  return std::stod(arm.weight_decay) * mean_rate * std::stod(arm.steps);
}

ClaimSpec DecayNeeded() {
  ClaimSpec claim = TrainingClaim(
      "decay-brings-alignment",
      "section-4.2",
      "\"This alignment phenomenon occurs due to l2 regularization, even if it is very weak\": without weight "
      "decay the outlier channel is less aligned.",
      "|cos(w1, w2)| of the outlier channel at the end, at the largest weight decay minus at weight decay 0",
      true);
  claim.margin = CosineMargin();
  claim.scale =
      "The paper's decay, 0.1 at rates up to 3e-4 over 500,000 steps, adds up to 8. A run in which the largest "
      "weight decay times the sum of the learning rates is 1 or more tests it.";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const std::vector<Arm> arms = AlongAxis(settings, &Arm::weight_decay);
    if (std::stod(arms.front().weight_decay) != 0) {
      return NotTestedBecause("--weight-decays has no 0");
    }
    const double times = DecayTimes(settings, arms.back());
    if (times < 1) {
      return NotTestedBecause(fmt::format(
          "out of reach: weight decay times the sum of the learning rates is {:.2g}, expected 1 or more",
          times));
    }
    return BetweenArms(tables, arms.back(), arms.front(), LateCos);
  };
  return claim;
}

ClaimSpec WeakDecay() {
  ClaimSpec claim = TrainingClaim(
      "weak-decay-aligns-more",
      "section-4.2",
      "\"Weak regularization will lead to larger weight norms, strengthening this effect.\"",
      "|cos(w1, w2)| of the outlier channel at the end, at the least weight decay above 0 minus at the largest",
      false);
  claim.margin = CosineMargin();
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    std::vector<Arm> arms = AlongAxis(settings, &Arm::weight_decay);
    std::erase_if(arms, [](const Arm& arm) { return std::stod(arm.weight_decay) == 0; });
    if (arms.size() < 2) return NotTestedBecause("there is one above 0 (--weight-decays)");
    return BetweenArms(tables, arms.front(), arms.back(), LateCos);
  };
  return claim;
}

// ---- the divergence

// Returns why a run of that size and length says nothing about Figure 2 (a); "" if it does.
std::string WhyNoDivergence(const Settings& settings) {
  const TrainConfig config = ConfigOf(settings, Centre(settings), settings.seed);
  const double tokens = static_cast<double>(config.train.steps) *
                        static_cast<double>(config.train.batch * config.model.context);
  if (tokens < kPapersTokens) {
    return fmt::format("out of reach: {:.2g} tokens; the divergence begins after 2e11", tokens);
  }
  const double parameters = ApproximateParameters(config);
  if (parameters < kPapersParameters) {
    return fmt::format("out of reach: {:.2g} parameters; the paper has 7e9", parameters);
  }
  return settings.Get("products") == "fp32" ? "--products is fp32, not FP8" : "";
}

ClaimSpec Fp8Diverges() {
  ClaimSpec claim =
      TrainingClaim("fp8-diverges",
                    "figure-2",
                    "Llama2 7B in FP8 diverges after 200 billion tokens (Figure 2 (a)).",
                    "share of the centre's runs that diverge, with --products in FP8",
                    true);
  claim.kind = ClaimKind::kDivergence;
  claim.margin = {.value = 0.5,
                  .unit = "of the runs",
                  .justification = "The paper's only run diverged; half of them is most runs."};
  claim.scale =
      "The paper: 7 billion parameters, 200 billion tokens. A run of 6 billion parameters, 200 billion tokens "
      "and FP8 products tests it.";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const std::string why = WhyNoDivergence(settings);
    if (!why.empty()) return NotTestedBecause(why);
    const Arm centre = Centre(settings);
    Evidence evidence;
    evidence.outcomes = OutcomesOf(RunsOfArm(tables, centre), kArmKey, [](const Frame& run) {
      return UnlessRunDiverged(run, LateCos);
    });
    evidence.outcomes.arms = {centre.Text()};
    evidence.contrasts = {{{centre.Text(), 1}}};
    return evidence;
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> TrainingClaims() {
  return {
      OutlierAligns(),
      GateNormGrows(),
      MostTokensSaturate(),
      DecayNeeded(),
      Fp8Diverges(),
      MoreThanOthers(),
      NinetyNinePercent(),
      GateIsFlat(),
      KurtosisGrows(),
      AlignedChannelsAreLarge(),
      WeakDecay(),
      AxisClaim("lr-brings-alignment",
                "section-4.2",
                "Not in the paper: a larger learning rate brings more alignment.",
                "learning rate",
                &Arm::lr,
                "lrs"),
      AxisClaim(
          "length-brings-alignment",
          "figure-2",
          "The amplification \"happens only over prolonged training periods\": longer trainings are more "
          "aligned.",
          "number of steps",
          &Arm::steps,
          "lengths")};
}

std::vector<ClaimSpec> Claims() {
  std::vector<ClaimSpec> claims = ExactClaims();
  for (ClaimSpec& claim : TrainingClaims()) claims.push_back(std::move(claim));
  return claims;
}

std::string Notes(const Settings&, const Tables& tables) {
  const Frame runs = RunsTable(tables);
  const size_t diverged = runs.Size() - runs.Where("status", "finished").Size();
  return fmt::format(
      "{} trainings, {} of them diverged.\n"
      "The trainings decay weights as AdamW does, not by the l2 term of Equation 1, which Adam would divide by "
      "the root of its second moment.",
      runs.Size(),
      diverged);
}

}  // namespace numsim::experiments::swiglu_alignment
