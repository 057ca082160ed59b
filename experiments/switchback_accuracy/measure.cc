// Measures one trial of `switchback-accuracy`: a training.
#include <cmath>
#include <string>
#include <utility>

#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/analysis/step_replay.h"
#include "numsim/base/error.h"
#include "numsim/stats/product_error.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

double ZeroShotOf(const Trainer& trainer) {
  const auto& zero_shot = trainer.last_zero_shot();
  return zero_shot.has_value() ? zero_shot->Accuracy() : std::nan("");
}

// Collects the rows of a training, including comparisons of its gradients.
class Recorder : public TrainingRows {
 public:
  Recorder(const Trainer& trainer, const Training& training, uint64_t seed)
      : TrainingRows({std::string(ToString(training.model)),
                      Text(training.size),
                      Tokens(trainer.config()),
                      training.variant.kind,
                      training.variant.format,
                      training.variant.gradient_format,
                      training.variant.layers,
                      seed}),
        trainer_(trainer) {}

  // Adds rows about the weight gradients of the next step.
  void AddGradients(const LinearPrecision& exact_weight_gradient);

 private:
  void AddGradient(const std::string& layer,
                   const NamedGradient<float>& own,
                   const NamedGradient<double>& reference,
                   const NamedGradient<float>& exact);

  const Trainer& trainer_;
};

void Recorder::AddGradient(const std::string& layer,
                           const NamedGradient<float>& own,
                           const NamedGradient<double>& reference,
                           const NamedGradient<float>& exact) {
  const size_t cols = own.shape.cols;
  const ProductError whole = CompareProduct<double>(reference.values, own.values, cols);
  const ProductError product = CompareProduct<float>(exact.values, own.values, cols);
  Add(kGradientsTable,
      {trainer_.steps_taken(),
       layer,
       InnerDimension(trainer_.config(), layer),
       whole.relative_error,
       product.relative_error,
       whole.cosine});
}

void Recorder::AddGradients(const LinearPrecision& exact_weight_gradient) {
  const StepReplay replay(trainer_);
  const ReplayPrecision as_trained = numsim::PrecisionOf(trainer_.config());
  ReplayPrecision with_exact = as_trained;
  with_exact.linear = exact_weight_gradient;
  const StepGradients<double> reference = replay.Run<double>(as_trained);
  const StepGradients<float> own = replay.Run<float>(as_trained);
  const StepGradients<float> exact = replay.Run<float>(with_exact);
  for (const NamedGradient<float>& gradient : own.gradients) {
    if (gradient.role != ParameterRole::kMatrix) continue;
    constexpr std::string_view kSuffix = ".weight";
    NUMSIM_CHECK(gradient.name.ends_with(kSuffix), "{}", gradient.name);
    AddGradient(gradient.name.substr(0, gradient.name.size() - kSuffix.size()),
                gradient,
                *reference.Find(gradient.name),
                *exact.Find(gradient.name));
  }
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const Training training = TrainingOf(trial);
  const TrainConfig config = ConfigOf(settings, training, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  Recorder record(trainer, training, trial.seed);
  const double start = trainer.Validate().Mean();
  record.Add(kCurvesTable, {0, start});

  const auto records = static_cast<uint64_t>(settings.GetInteger("records", 2, kMostSteps));
  const auto shadow_seeds =
      static_cast<uint64_t>(settings.GetInteger("shadow-seeds", 0, 1'000'000));
  const bool has_reference = trial.seed - settings.seed < shadow_seeds;
  const LinearPrecision exact = WithExactWeightGradient(config.linear);
  LossCurve curve(std::max<uint64_t>(1, config.train.steps / records));
  TrainingSteps loop(trial, trainer, [&](StateArchive& archive) { archive(record, curve); });
  while (loop.Next()) {
    if (has_reference && IsShadowStep(settings, trainer.steps_taken())) record.AddGradients(exact);
    trainer.Step();
    if (curve.Add(trainer)) record.Add(kCurvesTable, {curve.steps(), curve.loss()});
  }
  const double loss = FinalLoss(trainer);
  record.Add(kFinalTable,
             {trainer.model().parameters().Elements(),
              ToString(trainer.status()),
              trainer.steps_taken(),
              start,
              trainer.recent_loss(),
              loss,
              std::isfinite(loss) ? ZeroShotOf(trainer) : std::nan("")});
  return record.Take();
}

}  // namespace numsim::experiments::switchback_accuracy
