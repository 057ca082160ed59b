// Measures a training of `loss-scaling`.
#include <algorithm>
#include <cmath>

#include "experiments/loss_scaling/loss_scaling.h"
#include "experiments/shared/special_values.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::loss_scaling {
namespace {

using study::Measurement;

// A spike of one series coincides with one of another if it begins at most this many steps away.
constexpr uint64_t kTogether = 2;

double LargestActivation(const Table& tensors) {
  double largest = 0;
  for (size_t row = 0; row < tensors.rows.size(); ++row) {
    if (tensors.Text(row, "role") != "activation") continue;
    largest = std::max(largest, tensors.Number(row, "max_abs"));
  }
  return largest;
}

// Returns the least of the scales; NaN if no step was taken.
double LeastOf(const std::vector<double>& scales) {
  return scales.empty() ? kNaN : *std::ranges::min_element(scales);
}

// Returns the steps from the first fall of the scale until it is back; infinity if it never is, and 0
// if it never falls.
double RecoveryOf(const std::vector<double>& scales) {
  const double first = scales.empty() ? kNaN : scales.front();
  const auto fall = std::ranges::find_if(scales, [&](double s) { return s < first; });
  if (fall == scales.end()) return 0;
  const auto back = std::find_if(fall, scales.end(), [&](double s) { return s >= first; });
  return back == scales.end() ? kInfinity : static_cast<double>(back - fall);
}

// Returns the number of spikes of `losses` that a spike of the other series is near.
size_t CountTogether(const std::vector<uint64_t>& losses, const std::vector<uint64_t>& others) {
  return static_cast<size_t>(std::ranges::count_if(losses, [&](uint64_t step) {
    return std::ranges::any_of(others, [&](uint64_t other) {
      return (other > step ? other - step : step - other) <= kTogether;
    });
  }));
}

// Returns the largest number of steps that are within reach of these spikes, as a share of all steps.
double ShareNear(const std::vector<uint64_t>& spikes, uint64_t steps) {
  const double near = static_cast<double>(spikes.size() * (2 * kTogether + 1));
  return steps == 0 ? 0 : std::min(1.0, near / static_cast<double>(steps));
}

// Records a training step by step.
class ScalingProbe final : public study::Probe {
 public:
  explicit ScalingProbe(const Measurement& training)
      : skipped_(training.trainer.model().parameters().size()) {}

  void Before(Measurement& training) override {
    step_ = training.trainer.steps_taken();
    scale_ = training.trainer.optimizer().LossScale();
  }

  void After(Measurement& training) override {
    Trainer& trainer = training.trainer;
    if (trainer.steps_taken() == step_) return;  // its loss was not finite: there was no update
    const bool burst = trainer.config().stress.InBurst(losses_.size());
    scales_.push_back(scale_);
    losses_.push_back(trainer.last_loss());
    activations_.push_back(LargestActivation(trainer.telemetry().Of("tensors")));
    const OptimizerStep& update = trainer.last_update();
    gradient_norms_.push_back(update.gradient_norm);
    skipped_steps_ += update.skipped ? 1 : 0;
    for (size_t i = 0; i < skipped_.size(); ++i) {
      const bool skipped = update.skipped || update.tensors.at(i).skipped;
      skipped_[i] += skipped ? 1 : 0;
      burst_skipped_ += burst && skipped ? 1 : 0;
      burst_updates_ += burst ? 1 : 0;
    }
  }

  void End(Measurement& training) override {
    const double loss = training.FinalLoss();
    Row run = {training.trainer.model().parameters().Elements(),
               ToString(training.trainer.status()),
               losses_.size(),
               training.start_loss,
               loss,
               std::isfinite(loss) ? training.trainer.last_zero_shot()->Accuracy() : 0.0};
    AddSkipped(training, run);
    run.insert(run.end(),
               {LeastOf(scales_), scales_.empty() ? kNaN : scales_.back(), RecoveryOf(scales_)});
    AddSpikes(RuleOf(training.settings), run);
    training.rows.Add("runs", run);
    if (training.seed != training.settings.seed) return;
    for (size_t t = 0; t < scales_.size(); ++t) {
      training.rows.Add("scale", {t, scales_[t], losses_[t]});
    }
  }

  void Keep(StateArchive& archive) override {
    archive(losses_, scales_, gradient_norms_, activations_);
    archive(burst_skipped_, burst_updates_, skipped_steps_, skipped_);
  }

 private:
  void AddSkipped(Measurement& training, Row& run) const {
    double updates = 0, skipped = 0, early = 0, late = 0;
    size_t i = 0;
    for (const Parameter<float>& parameter : training.trainer.model().parameters()) {
      const auto own = static_cast<double>(skipped_[i++]);
      const bool is_early = IsEarly(parameter.name);
      updates += static_cast<double>(losses_.size());
      skipped += own;
      if (is_early) early += own;
      if (IsLate(parameter.name)) late += own;
      if (own > 0) training.rows.Add("tensors", {parameter.name, is_early ? 1 : 0, own});
    }
    run.insert(run.end(),
               {skipped_steps_,
                skipped / updates,
                early + late > 0 ? early / (early + late) : kNaN,
                burst_skipped_ / burst_updates_});
  }

  void AddSpikes(SpikeRule rule, Row& run) const {
    const std::vector<uint64_t> spikes = LossSpikes(losses_, rule);
    const uint64_t counted = losses_.size() - std::min<uint64_t>(rule.ignored, losses_.size());
    run.emplace_back(spikes.size());
    rule.confirm = 1;  // a single deviation of a maximum or a norm is an event
    for (const std::vector<double>* const series : {&gradient_norms_, &activations_}) {
      const std::vector<uint64_t> others = LossSpikes(*series, rule);
      run.emplace_back(CountTogether(spikes, others));
      run.emplace_back(ShareNear(others, counted));
    }
  }

  uint64_t step_ = 0;  // that is being taken
  double scale_ = 0;   // of that step
  std::vector<double> losses_, scales_, gradient_norms_, activations_;
  double burst_skipped_ = 0, burst_updates_ = 0;  // updates of tensors in the steps of a burst
  uint64_t skipped_steps_ = 0;                    // in which no tensor was updated
  std::vector<uint64_t> skipped_;  // per parameter: steps in which it was not updated
};

}  // namespace

study::ProbeSpec Scaling() {
  return {
      .tables =
          {{"runs",
            {{"parameters", "parameters of the model"},
             {"status", "finished or diverged"},
             {"steps", "steps, skipped ones included"},
             {"start_loss", "validation loss before training, nats"},
             {"valid_loss", "validation loss at the end; inf when diverged"},
             {"accuracy", "zero-shot accuracy on held-out captions, 0 to 1"},
             {"steps_skipped", "steps in which no tensor was updated"},
             {"updates_skipped", "share of all updates of tensors that were skipped, 0 to 1"},
             {"early",
              "share of those of blocks and of what is before them that are before block 1; nan: "
              "none"},
             {"burst_skipped",
              "share of the updates skipped in the steps of the burst; nan: no burst"},
             {"scale_min", "smallest loss scale"},
             {"scale_end", "loss scale of the last step"},
             {"recovery",
              "steps from the scale's first fall until it is back; inf: not in this run"},
             {"loss_spikes", "number of loss spikes after the warm-up"},
             {"with_gradient", "of these: with a spike of the gradient norm at most 2 steps away"},
             {"near_gradient",
              "share of all steps that are as near to one: with_gradient by chance"},
             {"with_activation", "loss spikes with a spike of the largest activation as near"},
             {"near_activation", "share of all steps that are as near to one"}}},
           {"tensors",
            {{"tensor", "parameter with skipped updates"},
             {"early", "1 if it is before the first block or in block 0"},
             {"skipped", "steps in which it was not updated"}}},
           {"scale",
            {{"step", "steps before this one; first seed alone"},
             {"loss_scale", "scale of this step"},
             {"loss", "loss of the batch"}}}},
      .make = [](const Measurement& training) { return std::make_unique<ScalingProbe>(training); }};
}

}  // namespace numsim::experiments::loss_scaling
