// The derived tables of `loss-spikes`: means over seeds, and how well events predict loss spikes.
#include "experiments/core/frame.h"
#include "experiments/loss_spikes/loss_spikes.h"
#include "numsim/stats/family.h"

namespace numsim::experiments::loss_spikes {
namespace {

void AddArms(const Frame& runs, Table& arms) {
  for (const Frame& arm : runs.By(kArmKey)) {
    Row row = CellsOf(ArmOf(arm));
    row.insert(row.end(), {arm.Size(), arm.Mean("collapsed")});
    Append({MeanOf(arm.Where("status", "finished").OverSeeds("valid_loss")),
            MeanOf(arm.OverSeeds("accuracy")),
            MeanOf(arm.OverSeeds("loss_spikes"))},
           row);
    row.insert(row.end(), {arm.Mean("steps_lost"), arm.Mean("rms_spikes")});
    Append({MeanOf(arm.OverSeeds("max_rms"))}, row);
    arms.rows.push_back(std::move(row));
  }
}

void AddPredictions(const std::vector<RunEvents>& runs, const std::string& scope, Table& table) {
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
    table.rows.push_back({scope,
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

void Derive(const Settings& settings, Tables& tables) {
  AddArms(tables.at(std::string(kRunsTable)), tables.at(std::string(kArmsTable)));
  for (const char* const scope : {kSteadyScope, kNewScope, kStudentScope}) {
    AddPredictions(
        EventsOf(settings, tables, scope), scope, tables.at(std::string(kPredictionTable)));
  }
}

}  // namespace numsim::experiments::loss_spikes
