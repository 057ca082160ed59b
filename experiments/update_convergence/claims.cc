// The claims of [Seed003] about pretraining, and the evidence of a run.
//
// The paper trains bf16 weights at the learning rate 1e-7, at which rounding to nearest loses
// almost every update. So a claim is tested in bf16, under every optimiser and at every learning
// rate below half the spacing of bf16 at the weights' standard deviation. The problem nearest to
// the paper's is logistic regression, which minimises a cross-entropy; claims about the quadratic
// are exploratory.
#include <fmt/format.h>

#include <cmath>

#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

constexpr std::string_view kPapersFormat = "bf16";
constexpr const char* kPapersScale =
    "The paper: a llama-like model of 200 million parameters on 60 million tokens of FineWeb at "
    "learning rate 1e-7. A run states its own size.";
// Returns the rate at which a step of 1 lr per weight is half of bf16's spacing at a weight of one
// standard deviation.
double HalfSpacing(const Settings& settings) {
  const double scale = settings.GetDouble("weight-scale", 0, 1e4);
  if (scale == 0) return 0;
  const int mantissa_bits = ParseFormat(kPapersFormat).spec.mantissa_bits;
  return std::ldexp(1, std::ilogb(scale) - mantissa_bits - 1);
}

using Outcome = std::function<double(const Frame& row)>;

// An arm of the paper's comparison: an update rule with the format of its weights.
struct Arm {
  std::string format, rule;

  bool Has(const Frame& row) const {
    return row.Text("format") == format && row.Text("rule") == rule;
  }
};

Arm InPapersFormat(UpdateKind rule) {
  return {std::string(kPapersFormat), std::string(ToString(rule))};
}

std::string ArmName(const Frame& group, const Arm& arm) {
  return fmt::format("{} / {} / {} / {} / {}",
                     group.Text("problem"),
                     group.Text("optimiser"),
                     group.Text("lr"),
                     arm.format,
                     arm.rule);
}

// Compares two arms in each training of a problem that the claims are about; "": of all problems.
Evidence CompareArms(const Settings& settings,
                     const Tables& tables,
                     const std::string& problem,
                     const Arm& arm,
                     const Arm& reference,
                     const Outcome& outcome) {
  const double most = HalfSpacing(settings);
  Frame all = tables.at(std::string(kRunsTable));
  if (!problem.empty()) all = all.Where("problem", problem);
  if (all.Empty()) return NotTestedBecause("the problem was not trained (--problems)");
  for (const Arm& needed : {arm, reference}) {
    if (all.Where([&](const Frame& row) { return needed.Has(row); }).Empty()) {
      return NotTestedBecause(
          fmt::format("{} in {} was not run (--formats, --rules)", needed.rule, needed.format));
    }
  }
  const Frame compared = all.Where([&](const Frame& row) {
    return row.Number("lr") < most && (arm.Has(row) || reference.Has(row));
  });
  if (compared.Empty()) {
    return NotTestedBecause(fmt::format("no learning rate is below {:.2g} (--lr)", most));
  }
  Evidence evidence;
  evidence.outcomes =
      OutcomesOf(compared, {"problem", "optimiser", "lr", "format", "rule"}, outcome);
  for (const Frame& group : compared.By({"problem", "optimiser", "lr"})) {
    evidence.contrasts.push_back(Gap(ArmName(group, arm), ArmName(group, reference)));
  }
  return evidence;
}

// Returns the mean of contrasts.
Contrast MeanContrast(const std::vector<Contrast>& contrasts) {
  Contrast mean;
  for (const Contrast& contrast : contrasts) {
    for (const ContrastTerm& term : contrast) {
      mean.push_back({term.arm, term.weight / static_cast<double>(contrasts.size())});
    }
  }
  return mean;
}

Margin ShareOfProgress() {
  return {kWithin,
          "of fp32's progress",
          "A curve that stays within 1 % of the other is not visibly behind it in a plot."};
}

ClaimSpec About(std::string name, std::vector<std::string> items) {
  ClaimSpec claim;
  claim.id = "update-convergence/" + std::move(name);
  claim.items = std::move(items);
  claim.scale = kPapersScale;
  return claim;
}

std::string ContrastText(std::string_view what,
                         std::string_view arm,
                         std::string_view reference,
                         const std::string& problem) {
  return fmt::format(
      "{}: {} minus {}, in bf16, {}optimiser and learning rate below half of bf16's "
      "spacing at --weight-scale",
      what,
      arm,
      reference,
      problem.empty() ? "for each problem, " : problem + ", for each ");
}

// Makes the claim about two rules with weights in bf16.
void CompareRules(ClaimSpec& claim,
                  const std::string& problem,
                  UpdateKind rule,
                  UpdateKind reference,
                  std::string_view what,
                  const Outcome& outcome) {
  claim.contrast = ContrastText(what, ToString(rule), ToString(reference), problem);
  claim.evidence = [=](const Settings& settings, const Tables& tables) {
    return CompareArms(
        settings, tables, problem, InPapersFormat(rule), InPapersFormat(reference), outcome);
  };
}

// Returns the outcome that reads a column of runs.csv.
Outcome Column(const char* name) {
  return [name](const Frame& row) { return row.Number(name); };
}

// The claims of the paper about a rule that matches the magnitude of the step. As printed, its code
// compares the squared norm with lr times that of the update, so that the step has the norm
// sqrt(lr) ||u||; the text asks for lr ||u||, which norm-matched does.
struct Matching {
  std::string name;
  UpdateKind rule;
  std::string problem;
  std::string words;   // end of the statements
  std::string suffix;  // end of the ids
  bool primary;
};

ClaimSpec FallsBehind(const Matching& of) {
  ClaimSpec claim = About(of.name + "-falls-behind" + of.suffix, {"seed003/conclusion"});
  claim.statement = fmt::format(
      "\"As training continues the low precision version falls further and further behind\" fp32 "
      "master weights{}.",
      of.words);
  claim.margin = ShareOfProgress();
  claim.primary = of.primary;
  CompareRules(claim,
               of.problem,
               of.rule,
               UpdateKind::kMasterFp32,
               "growth of the gap to fp32 from half-time to the end",
               Column("gap_growth"));
  return claim;
}

// Returns true if a training of the arm that a claim is about does not get to half of fp32's progress.
bool FallsShort(const Settings& settings,
                const Tables& tables,
                const std::string& problem,
                const Arm& arm) {
  const double most = HalfSpacing(settings);
  return !Frame(tables.at(std::string(kRunsTable)))
              .Where("problem", problem)
              .Where([&](const Frame& row) {
                return arm.Has(row) && row.Number("lr") < most && std::isinf(row.Number("delay"));
              })
              .Empty();
}

// Returns the evidence about delays, which are bounds where a training falls short.
Evidence HeedShortTrainings(const Matching& of,
                            const Settings& settings,
                            const Tables& tables,
                            Evidence delays) {
  constexpr const char* kShort = "a training with {} does not get to half of fp32's progress";
  const auto falls_short = [&](UpdateKind rule) {
    return FallsShort(settings, tables, of.problem, InPapersFormat(rule));
  };
  if (!delays.not_tested.empty()) return delays;
  if (falls_short(UpdateKind::kMasterFp32)) {
    return NotTestedBecause(fmt::format(kShort, ToString(UpdateKind::kMasterFp32)));
  }
  if (falls_short(of.rule)) {
    delays.bound = 1;
    delays.bound_reason = fmt::format(kShort, ToString(of.rule));
  }
  return delays;
}

ClaimSpec TakesLonger(const Matching& of) {
  ClaimSpec claim =
      About(of.name + "-slower" + of.suffix, {"seed003/pretraining", "seed003/figure-debug"});
  claim.statement =
      fmt::format("\"It takes much longer to converge\" than fp32 master weights{}.", of.words);
  claim.margin = {0.5,
                  "of fp32's steps",
                  "\"Much longer\": half as long again as fp32 takes to the same loss."};
  claim.primary = of.primary;
  CompareRules(
      claim,
      of.problem,
      of.rule,
      UpdateKind::kMasterFp32,
      "steps to half of fp32's progress, or of the whole training if it gets no further, over "
      "the steps of fp32",
      Column("least_delay"));
  claim.evidence = [of, compare = claim.evidence](const Settings& settings, const Tables& tables) {
    return HeedShortTrainings(of, settings, tables, compare(settings, tables));
  };
  return claim;
}

ClaimSpec MovesLess(const Matching& of) {
  ClaimSpec claim = About(of.name + "-weights-move-slower" + of.suffix,
                          {"seed003/pretraining", "seed003/figure-debug"});
  claim.statement = fmt::format(
      "\"The weights move more slowly overall\" than with fp32 master weights{}.", of.words);
  claim.margin = {0.1,
                  "of fp32's distance",
                  "A tenth of the way from the start to fp32's weights at the same step."};
  claim.side = -1;
  claim.primary = of.primary;
  CompareRules(claim,
               of.problem,
               of.rule,
               UpdateKind::kMasterFp32,
               "distance along fp32's path at the end",
               Column("travel"));
  return claim;
}

ClaimSpec MasterIsFine() {
  ClaimSpec claim = About("master-is-fine", {"seed003/conclusion"});
  claim.statement =
      "An \"extra set of master weights is fine\": with it, weights stored in bf16 "
      "train as well as in fp32.";
  claim.kind = ClaimKind::kEquivalence;
  claim.margin = ShareOfProgress();
  claim.primary = false;
  claim.contrast = ContrastText("loss at the end", ToString(UpdateKind::kMasterFp32), "fp32", "");
  claim.control =
      "the same of naive, whose updates below half of bf16's spacing are lost; mean over these trainings";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const auto against_fp32 = [&](UpdateKind rule) {
      return CompareArms(settings,
                         tables,
                         "",
                         InPapersFormat(rule),
                         {std::string(kBaselineFormat), std::string(kBaselineRule)},
                         Column("gap"));
    };
    Evidence evidence = against_fp32(UpdateKind::kMasterFp32);
    Evidence naive = against_fp32(UpdateKind::kNaive);
    naive.contrasts = {MeanContrast(naive.contrasts)};
    AddControl(naive, evidence);
    return evidence;
  };
  return claim;
}

// A claim of the analysis: `rule` ends with a smaller loss than `reference`.
ClaimSpec EndsLower(const char* name, UpdateKind rule, UpdateKind reference) {
  ClaimSpec claim = About(name, {"seed003/conclusion"});
  claim.statement = fmt::format("{} ends with a smaller loss than {} (analysis of [Seed003]).",
                                ToString(rule),
                                ToString(reference));
  claim.margin = ShareOfProgress();
  claim.side = -1;
  claim.primary = false;
  CompareRules(claim, "", rule, reference, "loss at the end", Column("gap"));
  return claim;
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  const UpdateKind norm = UpdateKind::kNormMatched, printed = UpdateKind::kNoteAsPrinted;
  const std::vector<Matching> matchings = {
      {"as-printed", printed, "logistic", ", for the code as printed", "", true},
      {"norm", norm, "logistic", ", for the norm that the text asks for", "", false},
      {"norm",
       norm,
       "quadratic",
       ", for the norm that the text asks for (here of a quadratic)",
       "-quadratic",
       false}};
  std::vector<ClaimSpec> claims;
  for (const Matching& matching : matchings) {
    claims.push_back(FallsBehind(matching));
    claims.push_back(TakesLonger(matching));
    claims.push_back(MovesLess(matching));
  }
  claims.push_back(MasterIsFine());
  claims.push_back(
      EndsLower("projection-beats-norm", UpdateKind::kProjectionMatched, UpdateKind::kNormMatched));
  claims.push_back(EndsLower(
      "stochastic-beats-projection", UpdateKind::kStochastic, UpdateKind::kProjectionMatched));
  claims.push_back(
      EndsLower("kahan-beats-projection", UpdateKind::kKahan, UpdateKind::kProjectionMatched));
  return claims;
}

std::vector<PaperSetting> PaperSettings() {
  return {
      {"",
       "The paper trains a llama-like model of 200 million parameters on 60 million tokens",
       "Pretraining",
       "Here the problems are small and have known optima, so that each rule can be compared with "
       "fp32 under many seeds."},
      {"",
       "The paper trains at learning rate 1e-7 for the steps of 60 million tokens",
       "Pretraining",
       "What matters is the distance of the whole training in spacings of bf16, lr x steps over the "
       "spacing, and that a step is below half a spacing. Both hold at the rates that are tested."},
      {"",
       "The paper does not name the optimiser",
       "Pretraining",
       "Here momentum and Adam are trained; an update has a root mean square of about 1. Muon, which "
       "the paper names, is not."},
      {"",
       "The paper trains on fineweb",
       "Pretraining",
       "Here the quadratic has noise in place of data, and the images of the logistic regression are drawn, "
       "of --image-size pixels a side, or those of --input."},
  };
}

}  // namespace numsim::experiments::update_convergence
