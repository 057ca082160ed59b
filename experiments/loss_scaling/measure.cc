// Measures one trial of `loss-scaling`: a training.
#include <algorithm>
#include <cmath>

#include "experiments/loss_scaling/loss_scaling.h"
#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::loss_scaling {
namespace {

// A spike of one series coincides with one of another if it begins at most this many steps away.
constexpr uint64_t kTogether = 2;

// The record of a training, step by step.
struct Record {
  std::vector<double> losses, scales, gradient_norms, activations;
  double burst_skipped = 0;       // share of the updates skipped in the steps of a burst; NaN: none
  uint64_t skipped_steps = 0;     // steps in which no tensor was updated
  std::vector<uint64_t> skipped;  // per parameter: steps in which it was not updated

  void Keep(StateArchive& archive) {
    archive(losses, scales, gradient_norms, activations, burst_skipped, skipped_steps, skipped);
  }
};

double LargestActivation(const Table& tensors) {
  double largest = 0;
  for (size_t row = 0; row < tensors.rows.size(); ++row) {
    if (tensors.Text(row, "role") != "activation") continue;
    largest = std::max(largest, tensors.Number(row, "max_abs"));
  }
  return largest;
}

Record Train(const Trial& trial, Trainer& trainer) {
  Record record;
  record.skipped.resize(trainer.model().parameters().size());
  double burst_updates = 0;
  TrainingSteps loop(
      trial, trainer, [&](StateArchive& archive) { archive(record, burst_updates); });
  while (loop.Next()) {
    const double scale = trainer.optimizer().LossScale();
    const uint64_t step = trainer.steps_taken();
    trainer.Step();
    if (trainer.steps_taken() == step) break;  // its loss was not finite: there was no update
    record.scales.push_back(scale);
    record.losses.push_back(trainer.last_loss());
    record.activations.push_back(LargestActivation(trainer.telemetry().Of("tensors")));
    trainer.telemetry().Clear();
    const OptimizerStep& update = trainer.last_update();
    record.gradient_norms.push_back(update.gradient_norm);
    record.skipped_steps += update.skipped ? 1 : 0;
    const bool burst = trainer.config().stress.InBurst(record.losses.size() - 1);
    for (size_t i = 0; i < record.skipped.size(); ++i) {
      const bool skipped = update.skipped || update.tensors.at(i).skipped;
      record.skipped[i] += skipped ? 1 : 0;
      record.burst_skipped += burst && skipped ? 1 : 0;
      burst_updates += burst ? 1 : 0;
    }
  }
  record.burst_skipped /= burst_updates;
  return record;
}

// Returns the least of the scales; NaN if no step was taken.
double LeastOf(const std::vector<double>& scales) {
  return scales.empty() ? kNaN : *std::min_element(scales.begin(), scales.end());
}

// Returns the steps from the first fall of the scale until it is back; infinity if it never is, and 0
// if it never falls.
double RecoveryOf(const std::vector<double>& scales) {
  const double first = scales.empty() ? kNaN : scales.front();
  const auto fall = std::find_if(scales.begin(), scales.end(), [&](double s) { return s < first; });
  if (fall == scales.end()) return 0;
  const auto back = std::find_if(fall, scales.end(), [&](double s) { return s >= first; });
  return back == scales.end() ? kInfinity : static_cast<double>(back - fall);
}

// Returns the number of spikes of `losses` that a spike of the other series is near.
size_t CountTogether(const std::vector<uint64_t>& losses, const std::vector<uint64_t>& others) {
  return static_cast<size_t>(std::count_if(losses.begin(), losses.end(), [&](uint64_t step) {
    return std::any_of(others.begin(), others.end(), [&](uint64_t other) {
      return (other > step ? other - step : step - other) <= kTogether;
    });
  }));
}

// Returns the largest number of steps that are within reach of these spikes, as a share of all steps.
double ShareNear(const std::vector<uint64_t>& spikes, uint64_t steps) {
  const double near = static_cast<double>(spikes.size() * (2 * kTogether + 1));
  return steps == 0 ? 0 : std::min(1.0, near / static_cast<double>(steps));
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(trial);
  const TrainConfig config = ConfigOf(settings, arm, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  const double start = trainer.Validate().Mean();
  const Record record = Train(trial, trainer);

  TrainingRows rows({arm.scaler, arm.scale, arm.event, trial.seed});
  double updates = 0, skipped = 0, early = 0, late = 0;
  size_t i = 0;
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    const auto own = static_cast<double>(record.skipped[i++]);
    updates += static_cast<double>(record.losses.size());
    skipped += own;
    if (IsEarly(parameter.name)) early += own;
    if (IsLate(parameter.name)) late += own;
    if (own > 0) rows.Add(kTensorsTable, {parameter.name, IsEarly(parameter.name) ? 1 : 0, own});
  }
  SpikeRule rule = RuleOf(settings);
  const std::vector<uint64_t> spikes = LossSpikes(record.losses, rule);
  // A single deviation of a maximum or a norm is an event.
  rule.confirm = 1;
  const std::vector<uint64_t> gradients = LossSpikes(record.gradient_norms, rule);
  const std::vector<uint64_t> activations = LossSpikes(record.activations, rule);
  const uint64_t counted =
      record.losses.size() - std::min<uint64_t>(rule.ignored, record.losses.size());
  const double loss = FinalLoss(trainer);
  rows.Add(kRunsTable,
           {trainer.model().parameters().Elements(),
            ToString(trainer.status()),
            record.losses.size(),
            start,
            loss,
            std::isfinite(loss) ? trainer.last_zero_shot()->Accuracy() : 0.0,
            record.skipped_steps,
            skipped / updates,
            early + late > 0 ? early / (early + late) : kNaN,
            record.burst_skipped,
            LeastOf(record.scales),
            record.scales.empty() ? kNaN : record.scales.back(),
            RecoveryOf(record.scales),
            spikes.size(),
            CountTogether(spikes, gradients),
            ShareNear(gradients, counted),
            CountTogether(spikes, activations),
            ShareNear(activations, counted)});
  if (trial.seed == settings.seed) {
    for (size_t t = 0; t < record.scales.size(); ++t) {
      rows.Add(kScaleTable, {t, record.scales[t], record.losses[t]});
    }
  }
  return rows.Take();
}

}  // namespace numsim::experiments::loss_scaling
