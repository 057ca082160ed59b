// The events of `loss-spikes`, read from its tables, and how well they predict loss spikes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "experiments/claims/family.h"
#include "experiments/claims/frame.h"
#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/block_name.h"
#include "experiments/shared/training.h"

namespace numsim::experiments::loss_spikes {
namespace {

using RunKey = std::pair<std::string, std::string>;  // label and seed
RunKey KeyOf(const Frame& row) {
  return {fmt::format("{}", fmt::join(ArmOfRow(row), " ")), row.Text("seed")};
}

std::vector<uint64_t> StepsIn(const std::string& text) {
  std::vector<uint64_t> steps;
  std::istringstream in(text);
  for (uint64_t step = 0; in >> step;) steps.push_back(step);
  return steps;
}

// Returns the AdamW runs of the scope, without their events.
std::map<RunKey, RunEvents> RunsOf(const Settings& settings,
                                   const Frame& runs,
                                   std::string_view scope) {
  const bool student = scope == kStudentScope;
  const std::string model = student ? kStudent : settings.GetList("models").front();
  const char* const data = scope == kNewScope ? kNewData : kSteady;
  const uint64_t change = ChangeStep(settings);
  std::map<RunKey, RunEvents> result;
  const Frame adamw = runs.Where("optimizer", kAdamW);
  adamw.Where("model", model).Where("data", data).ForEach([&](const Frame& run) {
    RunEvents events;
    events.arm = ArmOfRow(run);
    events.seed = run.Text("seed");
    events.last = static_cast<uint64_t>(run.Number("steps"));
    const SpikeRule rule = RuleOf(settings, events.arm);
    events.first = std::min(rule.ignored, events.last);
    if (scope == kNewScope) events.first = std::min(change + rule.window, events.last);
    result[KeyOf(run)] = std::move(events);
  });
  return result;
}

// Returns true if a model of that size has the parameter.
bool HasParameter(const Arm& arm, const std::string& parameter) {
  const std::optional<BlockName> name = ParseBlockName(parameter);
  return !name || name->block < ParseSize("sizes", arm[kSize]).layers;
}

// Drops what lies before the steps that count.
void DropEarly(RunEvents& run) {
  const auto drop = [&](std::vector<uint64_t>& steps) {
    std::erase_if(steps, [&](uint64_t step) { return step < run.first; });
  };
  const auto early = std::lower_bound(run.spikes.begin(), run.spikes.end(), run.first);
  run.lost.erase(run.lost.begin(), run.lost.begin() + (early - run.spikes.begin()));
  drop(run.spikes);
  for (auto& [parameter, steps] : run.rms) drop(steps);
  std::erase_if(run.rms, [](const auto& parameter) { return parameter.second.empty(); });
  if (run.curvature) drop(*run.curvature);
}

std::vector<uint64_t> AllSteps(const RunEvents& run) {
  std::vector<uint64_t> all;
  for (const auto& [parameter, steps] : run.rms) all.insert(all.end(), steps.begin(), steps.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

std::vector<RunEvents> EventsOf(const Settings& settings,
                                const Tables& tables,
                                std::string_view scope) {
  std::map<RunKey, RunEvents> runs = RunsOf(settings, tables.at("runs"), scope);
  Frame(tables.at("events")).ForEach([&](const Frame& row) {
    const auto found = runs.find(KeyOf(row));
    if (found == runs.end()) return;
    RunEvents& run = found->second;
    const std::string event = row.Text("event");
    std::vector<uint64_t> steps = StepsIn(row.Text("at"));
    if (event == "loss") {
      run.spikes = std::move(steps);
      run.lost = StepsIn(row.Text("lost"));
    } else if (event == "rms") {
      run.rms[row.Text("tensor")] = std::move(steps);
    } else {
      run.curvature = std::move(steps);
    }
  });
  std::vector<RunEvents> result;
  for (auto& [key, run] : runs) {
    DropEarly(run);
    // Predictors of a student are compared on the same runs.
    const bool compared = scope != kStudentScope || run.curvature || !settings.GetYes("curvature");
    if (compared && run.first < run.last) result.push_back(std::move(run));
  }
  return result;
}

std::vector<std::string> PredictorsOf(const std::vector<RunEvents>& runs) {
  std::set<std::string> names;
  for (const RunEvents& run : runs) {
    for (const auto& [parameter, steps] : run.rms) names.insert(parameter);
  }
  std::vector<std::string> predictors(names.begin(), names.end());
  if (!predictors.empty()) predictors.emplace_back(kAny);
  const bool curvature = std::all_of(
      runs.begin(), runs.end(), [](const RunEvents& run) { return run.curvature.has_value(); });
  if (!runs.empty() && curvature) predictors.emplace_back(kCurvature);
  return predictors;
}

std::vector<EventSeries> SeriesOf(const std::vector<RunEvents>& runs,
                                  const std::string& predictor) {
  std::vector<EventSeries> result;
  for (const RunEvents& run : runs) {
    if (!HasParameter(run.arm, predictor)) continue;
    EventSeries series{run.first, run.last, {}, run.spikes};
    if (predictor == kCurvature) {
      series.events = run.curvature.value();
    } else if (predictor == kAny) {
      series.events = AllSteps(run);
    } else if (const auto found = run.rms.find(predictor); found != run.rms.end()) {
      series.events = found->second;
    }
    result.push_back(std::move(series));
  }
  return result;
}

namespace {

void AddPredictions(const std::vector<RunEvents>& runs,
                    const std::string& scope,
                    std::vector<Row>& rows) {
  const std::vector<std::string> predictors = PredictorsOf(runs);
  std::vector<Prediction> predictions;
  std::vector<size_t> counts;
  std::vector<double> p;
  for (const std::string& predictor : predictors) {
    const std::vector<EventSeries> series = SeriesOf(runs, predictor);
    counts.push_back(series.size());
    predictions.push_back(Predict(series, SpikeRule()));
    p.push_back(predictions.back().p);
  }
  const std::vector<double> adjusted = HolmAdjusted(p);
  for (size_t i = 0; i < predictors.size(); ++i) {
    const Prediction& of = predictions[i];
    rows.push_back({scope,
                    predictors[i],
                    counts[i],
                    of.events,
                    of.spikes,
                    of.predicted,
                    of.Recall(),
                    of.Precision(),
                    of.expected,
                    of.p,
                    adjusted[i],
                    of.lead});
  }
}

}  // namespace

std::vector<Row> Predictions(const Results& results) {
  std::vector<Row> rows;
  for (const char* const scope : {kSteadyScope, kNewScope, kStudentScope}) {
    AddPredictions(EventsOf(results.settings, results.tables, scope), scope, rows);
  }
  return rows;
}

}  // namespace numsim::experiments::loss_spikes
