// Measures one trial of `loss-spikes`: a training.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
#include "numsim/analysis/curvature.h"
#include "numsim/base/elementary.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::loss_spikes {
namespace {

// A training has collapsed if it ends above this share of the loss of a guess.
constexpr double kCollapsedAbove = 0.95;
constexpr double kUnstableAbove = 2;  // StepCurvature::Times

// Returns the entropy of the frequencies of the targets in the validation batches.
double TargetEntropy(const Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  const size_t all = trainer.data().ValidBatches(config.train.batch, config.model.context);
  std::map<int32_t, double> counts;
  double total = 0;
  Batch batch;
  for (size_t i = 0; i < std::min(all, config.train.valid_batches); ++i) {
    trainer.data().ValidBatch(i, config.train.batch, config.model.context, batch);
    for (const int32_t target : batch.targets) {
      counts[target] += 1;
      total += 1;
    }
  }
  double entropy = 0;
  for (const auto& [target, count] : counts) entropy -= count / total * Log(count / total);
  return entropy;
}

// Returns the loss of a guess that knows only how frequent the answers are; NaN for a student.
double ChanceLoss(const Trainer& trainer) {
  if (trainer.config().model.kind == ModelKind::kMlp) return kNaN;
  if (trainer.config().model.kind == ModelKind::kClip) {
    return Log(static_cast<double>(trainer.config().train.batch));
  }
  return TargetEntropy(trainer);
}

// The record of a training, step by step.
struct StepRecord {
  std::vector<double> losses;
  std::vector<double> update_rms;        // of the input parameter
  std::vector<std::vector<double>> rms;  // per parameter
  std::vector<double> curvature;         // StepCurvature::Times; empty if it is not measured
  double bound_ratio = 0;                // largest RMS_t over its bound 1 / sqrt(1 - beta2)

  void Keep(StateArchive& archive) { archive(losses, update_rms, rms, curvature, bound_ratio); }
};

// Returns the upper bound of RMS_t for a constant beta2; 0 for optimisers that it does not hold for.
double RmsBound(const OptimizerConfig& config) {
  const bool adam =
      config.kind == OptimizerKind::kAdamW || config.kind == OptimizerKind::kStableAdamW;
  const StableOptions& stable = config.stable;
  if (!adam || stable.previous_u || stable.of_update || stable.of_moment) return 0;
  return config.beta2_decay > 0 ? 0 : 1 / std::sqrt(1 - config.beta2);
}

bool MeasuresCurvature(const Settings& settings, const Arm& arm) {
  const bool constant = !arm.beta2.starts_with(kSchedule);
  return settings.GetYes("curvature") && arm.model == kStudent && arm.optimizer == kAdamW &&
         constant;
}

StepRecord Train(
    const Trial& trial, Trainer& trainer, size_t input, bool curvature, uint64_t warmup) {
  StepRecord record;
  record.rms.resize(trainer.model().parameters().size());
  const double bound = RmsBound(trainer.config().optimizer);
  TrainingSteps loop(trial, trainer, [&](StateArchive& archive) { archive(record); });
  while (loop.Next()) {
    const uint64_t step = trainer.steps_taken();
    const double times = curvature && step >= warmup ? CurvatureOfNextStep(trainer).Times() : kNaN;
    trainer.Step();
    trainer.telemetry().Clear();
    if (trainer.steps_taken() == step) break;  // its loss was not finite: there was no update
    if (curvature) record.curvature.push_back(times);
    record.losses.push_back(trainer.last_loss());
    const OptimizerStep& update = trainer.last_update();
    for (size_t i = 0; i < record.rms.size(); ++i) {
      const double rms = update.tensors[i].rms;
      record.rms[i].push_back(rms);
      if (bound > 0) record.bound_ratio = std::max(record.bound_ratio, rms / bound);
    }
    record.update_rms.push_back(update.tensors[input].update_rms);
  }
  return record;
}

double LargestFrom(const std::vector<double>& values, uint64_t first, uint64_t last) {
  double largest = 0;
  for (uint64_t t = first; t < std::min<uint64_t>(last, values.size()); ++t) {
    largest = std::max(largest, values[t]);
  }
  return largest;
}

double MeanFrom(const std::vector<double>& values, uint64_t first, uint64_t last) {
  double sum = 0;
  for (uint64_t t = first; t < last; ++t) sum += values.at(t);
  return sum / static_cast<double>(last - first);
}

std::string Joined(const std::vector<uint64_t>& steps) {
  return fmt::format("{}", fmt::join(steps, " "));
}

constexpr uint64_t kAfterChange = 50;  // steps

// Adds the effect of a change at step `change` on the input parameter: RMS_t, and the size of steps.
void AddChange(const StepRecord& record, size_t input, uint64_t change, Row& row) {
  const std::vector<double>& rms = record.rms[input];
  if (change < kBeforeChange || change >= rms.size()) {
    row.insert(row.end(), {kNaN, kNaN, kNaN});
    return;
  }
  row.emplace_back(rms[change]);
  row.emplace_back(LargestFrom(rms, change, change + kAfterChange));
  row.emplace_back(LargestFrom(record.update_rms, change, change + kAfterChange) /
                   MeanFrom(record.update_rms, change - kBeforeChange, change));
}

std::shared_ptr<const DataSource> DataOf(const Settings& settings,
                                         const Arm& arm,
                                         const DataConfig& config,
                                         uint64_t change) {
  std::shared_ptr<const DataSource> data = OpenData(config);
  if (arm.data != kNewData) return data;
  const int64_t old_batches = settings.GetInteger("old-batches", 1, 1 << 20);
  return GrowingData(std::move(data), change, static_cast<uint64_t>(old_batches));
}

std::vector<std::string> ParameterNames(const Trainer& trainer) {
  std::vector<std::string> names;
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    names.push_back(parameter.name);
  }
  return names;
}

void AddEvents(const StepRecord& record,
               const std::vector<std::string>& names,
               const SpikeRule& rule,
               TrainingRows& rows) {
  const std::vector<uint64_t> spikes = LossSpikes(record.losses, rule);
  if (!spikes.empty()) {
    const std::string lost = Joined(RecoverySteps(record.losses, spikes, rule));
    rows.Add(kEventsTable, {"loss", "", spikes.size(), Joined(spikes), lost});
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const std::vector<uint64_t> events = RmsSpikes(record.rms[i], rule);
    if (events.empty()) continue;
    rows.Add(kEventsTable, {"rms", names[i], events.size(), Joined(events), ""});
  }
  if (record.curvature.empty()) return;
  SpikeRule above = rule;
  above.rms = kUnstableAbove;
  const std::vector<uint64_t> events = RmsSpikes(record.curvature, above);
  rows.Add(kEventsTable, {"curvature", "", events.size(), Joined(events), ""});
}

// Returns the cells that say how the training ended.
Row EndOf(const Trainer& trainer, const LossSum& valid, double start, double chance) {
  const bool finished = trainer.status() == TrainStatus::kFinished;
  const double loss = finished ? valid.Mean() : kInfinity;
  const double accuracy =
      trainer.last_zero_shot().has_value()
          ? trainer.last_zero_shot()->Accuracy()
          : static_cast<double>(valid.correct) / static_cast<double>(valid.counted);
  return {trainer.model().parameters().Elements(),
          ToString(trainer.status()),
          trainer.steps_taken(),
          start,
          chance,
          trainer.recent_loss(),
          loss,
          finished ? accuracy : 0.0,
          !finished || loss > kCollapsedAbove * chance ? 1 : 0};
}

void AddSpikes(const StepRecord& record, size_t input, const SpikeRule& rule, Row& row) {
  const std::vector<uint64_t> spikes = LossSpikes(record.losses, rule);
  row.insert(row.end(),
             {spikes.size(),
              StepsLost(record.losses, spikes, rule),
              RmsSpikes(record.rms[input], rule).size(),
              LargestFrom(record.rms[input], rule.ignored, record.losses.size()),
              record.bound_ratio});
}

// Returns true for AdamW and StableAdamW at the centre, whose first seed is traced.
bool IsTraced(const Settings& settings, const Arm& arm, uint64_t seed) {
  if (seed != settings.seed || (arm.optimizer != kAdamW && arm.optimizer != kStable)) return false;
  return With(arm, &Arm::optimizer, kAdamW) == Centre(settings, arm.beta2);
}

void AddTrace(const StepRecord& record, size_t input, size_t window, TrainingRows& rows) {
  const std::vector<double> deviations = LossDeviations(record.losses, window);
  for (size_t t = 0; t < record.losses.size(); ++t) {
    rows.Add(kTraceTable, {t, record.losses[t], deviations[t], record.rms[input][t]});
  }
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(trial);
  const TrainConfig config = ConfigOf(settings, arm, trial.seed);
  const SpikeRule rule = RuleOf(settings, arm);
  const uint64_t change = ChangeStep(settings);
  Trainer trainer(config, DataOf(settings, arm, config.data, change));
  const double start = trainer.Validate().Mean();
  const std::vector<std::string> names = ParameterNames(trainer);
  const std::string input_name = InputParameter(arm.model);
  const auto input =
      static_cast<size_t>(std::find(names.begin(), names.end(), input_name) - names.begin());
  NUMSIM_CHECK(input < names.size(), "{}", input_name);
  const StepRecord record =
      Train(trial, trainer, input, MeasuresCurvature(settings, arm), rule.ignored);

  Row key = CellsOf(arm);
  key.emplace_back(trial.seed);
  TrainingRows rows(key);
  AddEvents(record, names, rule, rows);
  const LossSum valid = trainer.Validate();
  Row run = EndOf(trainer, valid, start, ChanceLoss(trainer));
  AddSpikes(record, input, rule, run);
  AddChange(record, input, change, run);
  rows.Add(kRunsTable, run);
  if (IsTraced(settings, arm, trial.seed)) AddTrace(record, input, rule.window, rows);
  return rows.Take();
}

}  // namespace numsim::experiments::loss_spikes
