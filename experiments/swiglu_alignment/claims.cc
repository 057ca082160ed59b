// The claims of [Fishman] about the channels of trained models: outcomes of a run, and what a run is
// evidence of.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/runner/model_size.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/special_values.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

// ---- outcomes

using Outcome = std::function<double(const Frame& run)>;

double EarlyCos(const Frame& run) { return std::fabs(run.Number("cos_early")); }
double LateCos(const Frame& run) { return std::fabs(run.Number("cos_late")); }
double CosGrowth(const Frame& run) { return LateCos(run) - EarlyCos(run); }
double CosGrowthAboveOthers(const Frame& run) {
  return CosGrowth(run) - (run.Number("others_late") - run.Number("others_early"));
}
double GateNormGrowth(const Frame& run) { return run.Number("w2_late") / run.Number("w2_early"); }
double LogGateNormGrowth(const Frame& run) { return Log(GateNormGrowth(run)) / Log(2); }
double LogKurtosisGrowth(const Frame& run) {
  return Log(run.Number("kurtosis_late") / run.Number("kurtosis_early")) / Log(2);
}
double AboveOne(const Frame& run) { return 100 * run.Number("above_one"); }
double Slope(const Frame& run) { return run.Number("slope"); }
double Correlation(const Frame& run) { return run.Number("correlation"); }

bool Finished(const Frame& run) { return run.Text("status") == "finished"; }
// Returns an outcome that is infinite, which stands for a diverged run, for a run that did not finish.
Outcome IfFinished(double (*outcome)(const Frame& run)) {
  return [=](const Frame& run) { return Finished(run) ? outcome(run) : kInfinity; };
}

// ---- the centre

std::string CosText(const Frame& runs) {
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
      "|cos| of the outlier channel is {:.3f} early and {:.3f} at the end (means), of all other "
      "channels {:.3f} at the end; cos is negative in {} of {} runs.",
      early,
      late,
      others,
      negative,
      runs.Size());
}

Evidence OutlierAligns(const Results& results) {
  Evidence evidence = AgainstNumber(results, results.ArmOf({}), IfFinished(CosGrowth), 0);
  if (evidence.not_tested.empty()) evidence.measured = CosText(OfCentre(results, "runs"));
  return evidence;
}

// Without hindsight: the channel that leads at the early record and the one that leads at the end.
Evidence LeaderAligns(const Results& results) {
  const Frame points = OfCentre(results, "points");
  const auto growth = [&](const Frame& run) {
    const Frame own = points.Where("seed", run.Text("seed"));
    const Frame early = own.Where("step", run.Number("early_step"));
    if (!Finished(run) || early.Empty()) return kInfinity;
    const double late = own.Number(own.Size() - 1, "leading_cos");
    return std::fabs(late) - std::fabs(early.Number("leading_cos"));
  };
  return AgainstNumber(results, results.ArmOf({}), growth, 0);
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

Evidence SaturationComesFirst(const Results& results) {
  const Frame points = OfCentre(results, "points");
  const auto slope = [&](const Frame& run) {
    const Frame own = points.Where("seed", run.Text("seed"));
    if (!Finished(run) || own.Empty()) return kInfinity;
    return SlopeHalfway(own, run.Number("early_step"));
  };
  return AgainstNumber(results, results.ArmOf({}), slope, 0.125);
}

// ---- the axes

// An axis, its options and its text.
struct ClaimedAxis {
  const char *name, *centre, *others;
};
constexpr ClaimedAxis kDecay{"weight_decay", "weight-decay", "weight-decays"};
constexpr ClaimedAxis kAxes[] = {{"lr", "lr", "lrs"}, {"steps", "steps", "lengths"}, kDecay};

// Returns the values along an axis, from the least to the largest.
std::vector<std::string> ValuesAlong(const Settings& settings, const ClaimedAxis& axis) {
  std::vector<std::string> values = settings.GetListOrNone(axis.others);
  if (std::ranges::count(values, settings.Get(axis.centre)) == 0) {
    values.insert(values.begin(), settings.Get(axis.centre));
  }
  std::ranges::sort(values, {}, [](const std::string& value) { return std::stod(value); });
  return values;
}

void AddAxis(const ClaimedAxis& axis, study::Functions& functions) {
  const std::string name = axis.name;
  functions.values["least-" + name] = [=](const Settings& settings) {
    return ValuesAlong(settings, axis).front();
  };
  functions.values["most-" + name] = [=](const Settings& settings) {
    return ValuesAlong(settings, axis).back();
  };
  functions.obstacles["one-" + name] = [=](const Results& results) {
    const bool one = ValuesAlong(results.settings, axis).size() < 2;
    return one ? fmt::format("there is one (--{})", axis.others) : "";
  };
}

std::vector<std::string> DecaysAboveZero(const Settings& settings) {
  std::vector<std::string> decays = ValuesAlong(settings, kDecay);
  std::erase_if(decays, [](const std::string& decay) { return std::stod(decay) == 0; });
  return decays;
}

std::string WhyOneDecay(const Results& results) {
  const bool one = DecaysAboveZero(results.settings).size() < 2;
  return one ? "there is one above 0 (--weight-decays)" : "";
}

// The exponent of e by which weight decay alone shrinks the weights over a training is roughly the
// weight decay times the sum of the learning rates.
std::string WhyDecayDoesNotAct(const Results& results) {
  const Settings& settings = results.settings;
  const std::vector<std::string> decays = ValuesAlong(settings, kDecay);
  if (std::stod(decays.front()) != 0) return "--weight-decays has no 0";
  const double mean_rate =
      std::stod(settings.Get("lr")) * (1 + settings.GetDouble("final-lr", 0, 1)) / 2;
  const double times = std::stod(decays.back()) * mean_rate * std::stod(settings.Get("steps"));
  if (times >= 1) return "";
  return fmt::format(
      "out of reach: weight decay times the sum of the learning rates is {:.2g}, expected 1 or "
      "more",
      times);
}

// ---- Figure 2 (a)

constexpr double kPapersTokens = 2e11, kPapersParameters = 6e9;

std::string OutOfReach(const Results& results) {
  const Settings& settings = results.settings;
  const TrainConfig config =
      study::ConfigOf(results.study, settings, results.ArmOf({}), settings.seed);
  const double tokens = static_cast<double>(config.train.steps) *
                        static_cast<double>(config.train.batch * config.model.context);
  if (tokens < kPapersTokens) {
    return fmt::format("out of reach: {:.2g} tokens; the divergence begins after 2e11", tokens);
  }
  const double parameters = CountParameters(config).all;
  if (parameters < kPapersParameters) {
    return fmt::format("out of reach: {:.2g} parameters; the paper has 7e9", parameters);
  }
  return settings.Get("products") == "fp32" ? "--products is fp32, not FP8" : "";
}

}  // namespace

void AddClaimFunctions(study::Functions& functions) {
  functions.outcomes = {{"early-cos", IfFinished(EarlyCos)},
                        {"late-cos", IfFinished(LateCos)},
                        {"cos-growth-above-others", IfFinished(CosGrowthAboveOthers)},
                        {"w2-growth", IfFinished(GateNormGrowth)},
                        {"log-w2-growth", IfFinished(LogGateNormGrowth)},
                        {"log-kurtosis-growth", IfFinished(LogKurtosisGrowth)},
                        {"above-one", IfFinished(AboveOne)},
                        {"slope", IfFinished(Slope)},
                        {"correlation", IfFinished(Correlation)},
                        {"diverged", [](const Frame& run) { return Finished(run) ? 0.0 : 1.0; }}};
  functions.evidence["outlier-aligns"] = OutlierAligns;
  functions.evidence["leader-aligns"] = LeaderAligns;
  functions.evidence["saturation-comes-first"] = SaturationComesFirst;
  functions.values["weakest-decay"] = [](const Settings& settings) {
    return DecaysAboveZero(settings).front();
  };
  functions.obstacles = {{"one-decay-above-0", WhyOneDecay},
                         {"decay-does-not-act", WhyDecayDoesNotAct},
                         {"out-of-reach", OutOfReach}};
  for (const ClaimedAxis& axis : kAxes) AddAxis(axis, functions);
}

}  // namespace numsim::experiments::swiglu_alignment
