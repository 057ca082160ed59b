// The claims of `loss-spikes` that compare arms: Section 3 and Appendix F.1 of [SwitchBack].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::loss_spikes {
namespace {

using study::ArmContrast;
using study::ClaimRow;

using Outcome = double (*)(const Frame& run);

// Returns the number of a column; infinity, which is taken as diverged, if the run did: the few
// steps that it took say nothing about a whole training.
double UnlessDiverged(const Frame& run, const char* column) {
  return run.Text("status") == "finished" ? run.Number(column) : kInfinity;
}
double SpikesOf(const Frame& run) { return UnlessDiverged(run, "loss_spikes"); }
double Accuracy(const Frame& run) { return 100 * run.Number("accuracy"); }
double MaxRms(const Frame& run) { return UnlessDiverged(run, "max_rms"); }
double ChangeRms(const Frame& run) { return UnlessDiverged(run, "change_max_rms"); }

constexpr double kFewestSpikes = 0.5;  // per run
// Leaves the claim out if what the paper speaks of does not occur in such a run.
Evidence IfSpikesOccur(Evidence evidence, const std::vector<Frame>& arms) {
  double means[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    arms[i].ForEach([&](const Frame& run) { means[i] += SpikesOf(run); });
    means[i] /= static_cast<double>(arms[i].Size());
  }
  if (std::max(means[0], means[1]) >= kFewestSpikes) return evidence;
  return LeftOutBecause(
      fmt::format("{:.2g} and {:.2g} loss spikes per run, expected {} or more in one of the arms",
                  means[0],
                  means[1],
                  kFewestSpikes));
}

// ---- what the claims name

// An axis of accelerations.
struct Acceleration {
  const char* name;    // of the axis
  const char* option;  // list of other values
  Place place;
  const char* text;
};
constexpr Acceleration kAccelerations[] = {{"size", "sizes", kSize, "model size"},
                                           {"batch", "batches", kBatch, "batch size"},
                                           {"lr", "lrs", kLr, "learning rate"}};

void AddAcceleration(const Acceleration& axis, study::Functions& functions) {
  const auto values = [axis](const Settings& settings) {
    return ValuesAlong(settings, axis.place, axis.option);
  };
  const std::string name = axis.name;
  functions.values["least-" + name] = [=](const Settings& run) { return values(run).front(); };
  functions.values["most-" + name] = [=](const Settings& run) { return values(run).back(); };
  functions.obstacles["one-" + name] = [=](const Results& results) -> std::string {
    const auto all = values(results.settings);
    if (PlaceOf(axis.place, all.front()) != PlaceOf(axis.place, all.back())) return "";
    return fmt::format("there is one {} (--{})", axis.text, axis.option);
  };
}

std::string LeastBeta2(const Settings& settings) {
  return std::ranges::min(
      settings.GetList("beta2"), {}, [](const auto& text) { return std::stod(text); });
}

std::string WhyNoLowerBeta2(const Results& results) {
  const bool lower = std::stod(LeastBeta2(results.settings)) < std::stod(Low(results.settings));
  return lower ? "" : "--beta2 has no lower value";
}
// ---- remedies, at the first of --optimizer-beta2

std::string WhyNoRemedyBeta2(const Results& results) {
  return RemedyBeta2(results.settings).empty() ? "there is no beta2 (--optimizer-beta2)" : "";
}

Evidence SchedulesAgainstConstant(const Results& results) {
  const Settings& settings = results.settings;
  std::vector<ArmContrast> contrasts;
  for (const std::string& schedule : SchedulesOf(settings)) {
    contrasts.push_back(
        {{Centre(settings, schedule), 1}, {Centre(settings, RemedyBeta2(settings)), -1}});
  }
  if (contrasts.empty()) return NotTestedBecause("there is no schedule (--lambdas)");
  ClaimRow claim;
  claim.outcome = Outcome(Accuracy);
  return Compare(results, claim, contrasts);
}

// The rates of Lion are AdamW's divided by 3 or 10. Neither optimiser has one that was chosen on seeds that do
// not judge, so that their losses say nothing about the optimisers.
std::string WhyLionIsNotTuned(const Results& results) {
  const std::string beta2 = RemedyBeta2(results.settings);
  if (beta2.empty()) return WhyNoRemedyBeta2(results);
  const Frame runs = results.Of("runs");
  for (const char* const lion : {"lion:3", "lion:10"}) {
    const Arm arm = With(Centre(results.settings, beta2), kOptimizer, lion);
    if (results.OfArm(runs, arm).Empty()) continue;
    return fmt::format(
        "{}the learning rates of Lion and AdamW were not chosen on other seeds: Lion's is AdamW's "
        "divided by 3 or 10",
        kNoEvidence);
  }
  return "";
}

// ---- changes

// Returns the first change of --changes that begins so; "" if there is none.
std::string ChangeOf(const Settings& settings, const std::string& prefix) {
  for (const std::string& change : settings.GetListOrNone("changes")) {
    if (change.starts_with(prefix)) return change;
  }
  return "";
}

void AddChange(const std::string& kind, study::Functions& functions) {
  const std::string prefix = kind + ":";
  functions.values["first-" + kind] = [=](const Settings& settings) {
    return ChangeOf(settings, prefix);
  };
  functions.obstacles["no-" + kind] = [=](const Results& results) -> std::string {
    if (ChangeStep(results.settings) < kBeforeChange) {
      return fmt::format("--change-step is below {}", kBeforeChange);
    }
    if (results.settings.Get("changes").empty()) return "there is no change (--changes)";
    return ChangeOf(results.settings, prefix).empty() ? "--changes has no " + prefix + "F" : "";
  };
}

}  // namespace

Evidence Compare(const Results& results,
                 const ClaimRow& claim,
                 const std::vector<ArmContrast>& contrasts) {
  const Outcome outcome = *claim.outcome.target<Outcome>();
  const Frame runs = results.Of("runs");
  std::vector<Arm> arms;
  std::vector<Frame> rows;
  double parameters = 0;
  for (const ArmContrast& contrast : contrasts) {
    for (const auto& [arm, weight] : contrast) {
      if (arm[kModel] == kStudent && (outcome == Loss || outcome == Accuracy)) {
        return NotTestedBecause(
            "out of reach: a student has squared errors, neither nats nor accuracy");
      }
      rows.push_back(results.OfArm(runs, arm));
      if (rows.back().Empty()) {
        return NotTestedBecause("was not trained: " +
                                ArmText(results.study, arm, results.study.arm_text));
      }
      parameters = std::max(parameters, rows.back().Number("parameters"));
      arms.push_back(arm);
    }
  }
  const auto collapsed = [](const Frame& arm) { return arm.Mean("collapsed") > 0.5; };
  if (outcome == Loss && std::ranges::all_of(rows, collapsed)) {
    return LeftOutBecause("most runs of each arm collapsed");
  }
  const Frame pool =
      runs.Where([&](const Frame& run) { return std::ranges::count(arms, ArmOfRow(run)) > 0; });
  Evidence evidence = study::CompareArms(results, pool, contrasts, outcome);
  evidence.parameters = parameters;
  return outcome == SpikesOf ? IfSpikesOccur(std::move(evidence), rows) : evidence;
}

double Loss(const Frame& run) {
  return std::min(UnlessDiverged(run, "valid_loss"), run.Number("chance_loss"));
}

void AddClaimFunctions(study::Functions& functions) {
  functions.values = {
      {"high", High},
      {"low", Low},
      {"least-beta2", LeastBeta2},
      {"remedy", RemedyBeta2},
      {"student-batch", [](const Settings& settings) { return settings.Get("student-batch"); }}};
  functions.outcomes = {{"spikes", SpikesOf},
                        {"loss", Loss},
                        {"accuracy", Accuracy},
                        {"max_rms", MaxRms},
                        {"change_rms", ChangeRms}};
  functions.obstacles = {{"no-lower-beta2", WhyNoLowerBeta2},
                         {"no-remedy-beta2", WhyNoRemedyBeta2},
                         {"lion-is-not-tuned", WhyLionIsNotTuned}};
  functions.evidence = PredictionEvidence();
  functions.evidence["schedules-against-constant"] = SchedulesAgainstConstant;
  for (const Acceleration& axis : kAccelerations) AddAcceleration(axis, functions);
  for (const char* const kind : {"jump", "constant", "contrast"}) AddChange(kind, functions);
}

}  // namespace numsim::experiments::loss_spikes
