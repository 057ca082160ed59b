// Measures one trial of `fp8-outliers`: a training from scratch, or all recipes from one checkpoint.
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

// Adds the row of a training; `outcome` is null for one from scratch, which meets no outlier.
void AddRun(const Arm& arm,
            uint64_t seed,
            double start,
            Trainer& trainer,
            const Outcome* outcome,
            TrainingRows& rows) {
  Row row = {arm.plant,
             arm.recipe,
             arm.lr,
             seed,
             trainer.model().parameters().Elements(),
             ToString(trainer.status()),
             trainer.steps_taken(),
             start,
             FinalLoss(trainer)};
  if (outcome == nullptr) {
    row.insert(row.end(), 6, Cell(kNaN));
  } else {
    const auto since = [](const std::optional<uint64_t>& step) {
      return step.has_value() ? static_cast<double>(*step) : kNaN;
    };
    row.insert(row.end(),
               {outcome->saturated,
                outcome->flushed,
                outcome->bad,
                since(outcome->first_bad),
                since(outcome->last_bad),
                outcome->worst_excess});
  }
  rows.Add(kRunsTable, row);
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
  Planted(const Settings& settings, const Trial& trial)
      : settings_(settings),
        trial_(trial),
        schedule_(ScheduleOf(settings)),
        kind_(ParsePlant(trial.parameters.at("plant"))),
        seed_(trial.seed) {}

  // Trains the clean checkpoint in bf16.
  void TrainClean() {
    const TrainConfig config =
        ConfigOf(settings_, {std::string(kNone), "bf16", settings_.Get("lr")}, seed_);
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
    const TrainConfig config = ConfigOf(settings_, arm, seed_);
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
                 {arm.plant,
                  arm.recipe,
                  seed_,
                  static_cast<double>(step) - static_cast<double>(schedule_.event),
                  trainer.last_loss(),
                  input.absmax,
                  input.overflow,
                  input.underflow,
                  input.sqnr});
      }
    }
    AddRun(arm, seed_, start_, trainer, &outcome, rows);
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

Rows TrainFromScratch(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmsOf(settings, trial).front();
  const TrainConfig config = ConfigOf(settings, arm, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  TrainingRows rows({});
  const double start = trainer.Validate().Mean();
  TrainingSteps loop(trial, trainer, [](StateArchive&) {});
  while (loop.Next()) {
    trainer.Step();
    trainer.telemetry().Clear();
  }
  AddRun(arm, trial.seed, start, trainer, nullptr, rows);
  return rows.Take();
}

}  // namespace

bool Saturates(double overflow, double sqnr) { return overflow > 0 && sqnr < kWorstSqnr; }
bool Flushes(double underflow) { return underflow > kMostZeros; }

Rows Measure(const Settings& settings, const Trial& trial) {
  if (trial.parameters.at("plant") == kScratch) return TrainFromScratch(settings, trial);
  Planted planted(settings, trial);
  planted.TrainClean();
  TrainingRows rows({});
  for (const Arm& arm : ArmsOf(settings, trial)) planted.Run(arm, rows);
  return rows.Take();
}

}  // namespace numsim::experiments::fp8_outliers
