// The claims of `loss-spikes` about the prediction of loss spikes: Figures 4 and 15 to 20, Appendix
// E.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments::loss_spikes {
namespace {

constexpr uint64_t kLeastSpikes = 10;  // loss spikes that a statement about recall needs

// Chance is that of shifts by up to this many steps: a trend that both series have over the
// training is no prediction.
constexpr uint64_t kMostShift = 50;

SpikeRule NearShifts() {
  SpikeRule rule;
  rule.most_shift = kMostShift;
  return rule;
}

std::map<std::string, Prediction> PerSeed(const std::vector<RunEvents>& runs,
                                          const std::string& predictor) {
  std::map<std::string, std::vector<RunEvents>> seeds;
  for (const RunEvents& run : runs) seeds[run.seed].push_back(run);
  std::map<std::string, Prediction> predictions;
  for (const auto& [seed, own] : seeds) {
    const Prediction of = Predict(SeriesOf(own, predictor), NearShifts());
    if (of.spikes > 0) predictions[seed] = of;
  }
  return predictions;
}

double RecallByChance(const Prediction& p) { return p.expected / static_cast<double>(p.spikes); }

// Returns, per seed, the share of loss spikes that a predictor precedes minus that by chance.
SeedValues ExcessRecall(const std::vector<RunEvents>& runs, const std::string& predictor) {
  SeedValues excess;
  for (const auto& [seed, p] : PerSeed(runs, predictor))
    excess[seed] = p.Recall() - RecallByChance(p);
  return excess;
}

// Returns the excess over the largest possible one, which compares predictors with different
// numbers of events: 1 if all spikes are preceded, 0 by chance.
SeedValues Skill(const std::vector<RunEvents>& runs, const std::string& predictor) {
  SeedValues skill;
  for (const auto& [seed, p] : PerSeed(runs, predictor)) {
    const double chance = RecallByChance(p);
    skill[seed] = chance < 1 ? (p.Recall() - chance) / (1 - chance) : 0;
  }
  return skill;
}

std::string WhyTooFew(const std::vector<RunEvents>& runs) {
  uint64_t spikes = 0;
  for (const RunEvents& run : runs) spikes += run.spikes.size();
  if (spikes >= kLeastSpikes) return "";
  return fmt::format(
      "{} loss spikes in {} runs, expected at least {}", spikes, runs.size(), kLeastSpikes);
}

std::string MeasuredText(const std::vector<RunEvents>& runs, const std::string& predictor) {
  const std::vector<EventSeries> series = SeriesOf(runs, predictor);
  const Prediction p = Predict(series, SpikeRule());
  const Prediction near = Predict(series, NearShifts());
  return fmt::format(
      "\n  {}: {} of {} loss spikes follow an event by 1 to 8 steps, {:.1f} expected over all "
      "shifts (p = {:.2g}), {:.1f} over shifts by up to {} steps (p = {:.2g}); {} of {} events are "
      "followed by a loss spike",
      predictor,
      p.predicted,
      p.spikes,
      p.expected,
      p.p,
      near.expected,
      kMostShift,
      near.p,
      p.followed,
      p.events);
}

std::string InputOf(const Results& results) {
  return InputParameter(results.settings.GetList("models").front());
}

Evidence Precedes(const Results& results, const char* scope) {
  const std::vector<RunEvents> runs = EventsOf(results.settings, results.tables, scope);
  if (const std::string why = WhyTooFew(runs); !why.empty()) return LeftOutBecause(why);
  const std::string input = InputOf(results);
  Evidence evidence = AgainstReference(input + " above chance", ExcessRecall(runs, input), 0);
  evidence.measured = MeasuredText(runs, input) + MeasuredText(runs, kAny);
  return evidence;
}

Evidence PatchesAgainstOthers(const Results& results) {
  const std::vector<RunEvents> runs = EventsOf(results.settings, results.tables, kSteadyScope);
  if (const std::string why = WhyTooFew(runs); !why.empty()) return LeftOutBecause(why);
  const std::string input = InputOf(results);
  if (PredictorsOf(runs).empty()) return LeftOutBecause("there is no RMS spike");
  SeedValues difference = Skill(runs, input);
  std::map<std::string, std::pair<double, double>> others;  // sum and number per seed
  for (const std::string& predictor : PredictorsOf(runs)) {
    if (predictor == input || predictor == kAny || predictor == kCurvature) continue;
    if (SeriesOf(runs, predictor).size() < runs.size()) continue;  // not in all models
    for (const auto& [seed, skill] : Skill(runs, predictor)) {
      others[seed].first += skill;
      others[seed].second += 1;
    }
  }
  for (auto& [seed, value] : difference) {
    const auto& [sum, count] = others[seed];
    value -= count > 0 ? sum / count : 0;
  }
  return AgainstReference(input + " minus the others", difference, 0);
}

Evidence CostOfUnpredicted(const Results& results) {
  using Steps = std::vector<double>;
  std::map<std::string, std::pair<Steps, Steps>> seeds;  // with an RMS spike before it, and without
  for (const RunEvents& run : EventsOf(results.settings, results.tables, kSteadyScope)) {
    const EventSeries series = SeriesOf({run}, InputParameter(run.arm[kModel])).at(0);
    for (size_t i = 0; i < run.spikes.size(); ++i) {
      if (run.lost.at(i) == 0) continue;  // part of the spike before
      const EventSeries one{series.first, series.last, series.events, {run.spikes[i]}};
      const bool predicted = Predict({&one, 1}, SpikeRule()).predicted > 0;
      auto& [with, without] = seeds[run.seed];
      (predicted ? with : without).push_back(static_cast<double>(run.lost.at(i)));
    }
  }
  SeedValues difference;
  for (const auto& [seed, lost] : seeds) {
    const auto& [with, without] = lost;
    if (with.empty() || without.empty()) continue;
    difference[seed] = MeanOf(without).value - MeanOf(with).value;
  }
  if (difference.size() >= 2) return AgainstReference("without minus with", difference, 0);
  return LeftOutBecause(
      fmt::format("seeds with spikes of both kinds: {}, expected at least 2", difference.size()));
}

Evidence CurvatureAgainstRms(const Results& results) {
  const std::vector<RunEvents> runs = EventsOf(results.settings, results.tables, kStudentScope);
  if (std::ranges::count(PredictorsOf(runs), kCurvature) == 0) {
    return NotTestedBecause("no curvature was measured (--student-lrs, --curvature)");
  }
  if (const std::string why = WhyTooFew(runs); !why.empty()) return LeftOutBecause(why);
  SeedValues difference = Skill(runs, kCurvature);
  const SeedValues rms = Skill(runs, kAny);
  for (auto& [seed, value] : difference) value -= rms.at(seed);
  Evidence evidence = AgainstReference("curvature minus RMS_t", difference, 0);
  evidence.measured = MeasuredText(runs, kCurvature) + MeasuredText(runs, kAny);
  return evidence;
}

Evidence IsBounded(const Results& results) {
  double largest = 0;
  for (const double ratio : results.Of("runs").Numbers("bound_ratio"))
    largest = std::max(largest, ratio);
  if (largest == 0) return NotTestedBecause("no run has such an RMS_t");
  Evidence evidence;
  evidence.exact = largest <= 1 + 1e-5;
  evidence.measured = fmt::format("largest ratio {:.6f}", largest);
  return evidence;
}

}  // namespace

study::Named<std::function<Evidence(const Results&)>> PredictionEvidence() {
  const auto precedes = [](const char* scope) {
    return [=](const Results& results) { return Precedes(results, scope); };
  };
  return {{"rms-precedes-steady", precedes(kSteadyScope)},
          {"rms-precedes-new", precedes(kNewScope)},
          {"patches-against-others", PatchesAgainstOthers},
          {"cost-of-unpredicted", CostOfUnpredicted},
          {"curvature-against-rms", CurvatureAgainstRms},
          {"rms-is-bounded", IsBounded}};
}

}  // namespace numsim::experiments::loss_spikes
