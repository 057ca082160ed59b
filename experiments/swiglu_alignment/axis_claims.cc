// The claims of `swiglu-alignment` about weight decay, learning rate, length and divergence.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/runner/settings.h"
#include "experiments/shared/training.h"
#include "experiments/swiglu_alignment/claim_parts.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

constexpr double kPapersTokens = 2e11, kPapersParameters = 6e9;

// Returns evidence about the outcome of two arms, with the residual of all arms.
Evidence BetweenArms(const Tables& tables, const Arm& arm, const Arm& other, RunOutcome outcome) {
  const Frame runs = tables.at(std::string(kRunsTable));
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

// Returns the exponent of e by which weight decay alone shrinks the weights over the training of an
// arm, roughly: weight decay times the sum of the learning rates.
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
      false);
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

}  // namespace

std::vector<ClaimSpec> AxisClaims() {
  return {
      DecayNeeded(),
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

}  // namespace numsim::experiments::swiglu_alignment
