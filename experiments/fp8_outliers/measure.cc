// Measures the trainings of a plant: all recipes from one checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "experiments/fp8_outliers/fp8_outliers.h"
#include "experiments/fp8_outliers/plant.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::fp8_outliers {
namespace {

using namespace study;

// The outcomes of the steps from the event on.
struct Outcome {
  uint64_t saturated = 0, flushed = 0, bad = 0;
  std::optional<uint64_t> first_bad, last_bad;  // steps after the event
  double worst_excess = 0;                      // of the loss over bf16's

  void Keep(StateArchive& archive) {
    archive(saturated, flushed, bad, first_bad, last_bad, worst_excess);
  }
  void Add(uint64_t since, const W3Input& input, double excess) {
    const bool saturates = Saturates(input.overflow, input.sqnr);
    const bool flushes = Flushes(input.underflow);
    saturated += saturates ? 1 : 0;
    flushed += flushes ? 1 : 0;
    if (std::isfinite(excess)) worst_excess = std::max(worst_excess, excess);
    if (!saturates && !flushes) return;
    ++bad;
    if (!first_bad.has_value()) first_bad = since;
    last_bad = since;
  }
};

// Adds the row of a training that went on from the checkpoint.
void AddRun(const Arm& arm,
            uint64_t seed,
            double start,
            Trainer& trainer,
            const Outcome& outcome,
            TrainingRows& rows) {
  const auto since = [](const std::optional<uint64_t>& step) {
    return step.has_value() ? static_cast<double>(*step) : kNaN;
  };
  rows.Add(kRunsTable,
           {arm[kPlant],
            arm[kRecipe],
            arm[kLr],
            seed,
            trainer.model().parameters().Elements(),
            ToString(trainer.status()),
            trainer.steps_taken(),
            start,
            FinalLoss(trainer),
            outcome.saturated,
            outcome.flushed,
            outcome.bad,
            since(outcome.first_bad),
            since(outcome.last_bad),
            outcome.worst_excess});
}

// The state of a clean training, for a trainer of another recipe: its scales start anew.
TrainState StateFor(const TrainState& clean, const TrainConfig& config) {
  TrainState state = clean;
  std::erase_if(state.tensors,
                [](const auto& entry) { return entry.first.starts_with("scaling/"); });
  for (auto& [name, value] : state.fields) {
    if (name == "config") value = WriteTrainConfig(config);
  }
  return state;
}

// The trainings of one seed and plant.
class Planted {
 public:
  Planted(const Study& study, const Settings& settings, const Trial& trial)
      : study_(study),
        settings_(settings),
        trial_(trial),
        schedule_(ScheduleOf(settings)),
        kind_(ParsePlant(trial.parameters.at("plant"))),
        seed_(trial.seed) {}

  // Trains the clean checkpoint in bf16.
  void TrainClean() {
    const TrainConfig config =
        ConfigOf(study_, settings_, {kNone, kBf16, settings_.Get("lr")}, seed_);
    std::shared_ptr<const DataSource> data = OpenData(config.data);
    Trainer trainer(config, data);
    start_ = trainer.Validate().Mean();
    TrainingSteps loop(
        trial_, trainer, [](StateArchive&) {}, "clean");
    while (trainer.steps_taken() < schedule_.clean && loop.Next()) {
      trainer.Step();
      trainer.telemetry().Clear();
    }
    blocks_ = MeasureMlps(trainer, BlocksOf(settings_));
    for (const CleanMlp& block : blocks_)
      growing_.emplace_back(block, trainer.model().parameters());
    clean_ = trainer.Save();
    data_ = std::move(data);
  }

  void Run(const Arm& arm, TrainingRows& rows) {
    const TrainConfig config = ConfigOf(study_, settings_, arm, seed_);
    Trainer trainer(config, data_);
    trainer.Restore(StateFor(clean_, trainer.config()));
    Watch watch(blocks_);
    trainer.Observe(&watch);
    const bool reference = losses_.empty();  // bf16 comes first
    Outcome outcome;
    TrainingSteps loop(
        trial_,
        trainer,
        [&](StateArchive& archive) { archive(outcome, losses_, rows); },
        fmt::format("arm{}", arms_++));
    while (loop.Next()) {
      const uint64_t step = trainer.steps_taken();
      watch.Begin(0);
      if (step >= schedule_.event) Plant(step - schedule_.event, trainer, watch);
      trainer.Step();
      trainer.telemetry().Clear();
      const W3Input& input = watch.w3_input();
      const uint64_t index = step - schedule_.clean;
      if (reference) losses_.push_back(trainer.last_loss());
      const double expected = index < losses_.size() ? losses_[index] : kNaN;
      if (step >= schedule_.event) {
        outcome.Add(step - schedule_.event, input, trainer.last_loss() - expected);
      }
      if (seed_ == settings_.seed) {
        rows.Add(kTraceTable,
                 {arm[kPlant],
                  arm[kRecipe],
                  seed_,
                  static_cast<double>(step) - static_cast<double>(schedule_.event),
                  trainer.last_loss(),
                  input.absmax,
                  input.overflow,
                  input.underflow,
                  input.sqnr});
      }
    }
    AddRun(arm, seed_, start_, trainer, outcome, rows);
  }

 private:
  // Plants the outlier of a step, `since` steps after the event: the added constant, or the weights on
  // a ramp over half of the steps.
  void Plant(uint64_t since, Trainer& trainer, Watch& watch) const {
    const auto period = static_cast<uint64_t>(settings_.GetInteger("period", 1, kMostSteps));
    if (kind_.kind == kWeights) {
      const double ramp = static_cast<double>(schedule_.end - schedule_.event) / 2;
      const double done = std::min(1.0, static_cast<double>(since + 1) / ramp);
      const double factor = std::pow(kind_.size, done);
      for (const GrowingWeights& block : growing_)
        block.Impose(factor, trainer.model().parameters());
    }
    const bool token =
        (kind_.kind == kOnce && since == 0) || (kind_.kind == kEvery && since % period == 0);
    watch.Begin(token ? kind_.size : 0);
  }

  const Study& study_;
  const Settings& settings_;
  const Trial& trial_;
  Schedule schedule_;
  PlantKind kind_;
  uint64_t seed_;
  double start_ = kNaN;
  TrainState clean_;
  std::shared_ptr<const DataSource> data_;
  std::vector<CleanMlp> blocks_;
  std::vector<GrowingWeights> growing_;
  std::vector<double> losses_;  // of bf16, from the checkpoint on
  size_t arms_ = 0;             // begun
};

}  // namespace

bool Saturates(double overflow, double sqnr) { return overflow > 0 && sqnr < kWorstSqnr; }
bool Flushes(double underflow) { return underflow > kMostZeros; }

std::vector<EndColumn> OutlierColumns() {
  const std::vector<Column> columns = {
      {"saturated_steps", "steps from the outlier on that saturate it, to below 20 dB"},
      {"flushed_steps", "steps in which more than half of its elements become zero"},
      {"bad_steps", "steps with either"},
      {"first_bad", "first bad step, counted from that of the outlier; nan: none"},
      {"last_bad", "last bad step; nan: none"},
      {"worst_excess", "largest training loss of a step minus that of bf16, nats"}};
  std::vector<EndColumn> ends;
  for (const Column& column : columns) ends.push_back({column, [](Measurement&) { return kNaN; }});
  return ends;
}

// Trainings from scratch have no trace.
ProbeSpec Trace() {
  return {.tables = {{kTraceTable,
                      {{"plant", "as in runs.csv; first seed alone"},
                       {"recipe", "recipe"},
                       {"seed", "seed"},
                       {"step", "step, counted from that of the outlier"},
                       {"loss", "loss of the batch, nats"},
                       {"absmax", "largest magnitude of the input of w3; nan in bf16"},
                       {"overflow", "share of its elements that saturate"},
                       {"underflow", "share of its nonzero elements that become zero"},
                       {"sqnr", "ratio of signal to quantisation noise, dB; nan in bf16"}},
                      false}},
          .make = [](const Measurement&) { return std::make_unique<Probe>(); }};
}

Rows MeasurePlanted(const Study& study, const Settings& settings, const Trial& trial) {
  Planted planted(study, settings, trial);
  planted.TrainClean();
  TrainingRows rows({});
  for (const Arm& arm : TrainedArms(study, settings, ArmOf(study, trial))) planted.Run(arm, rows);
  return rows.Take();
}

}  // namespace numsim::experiments::fp8_outliers
