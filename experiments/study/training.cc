// Runs the training of a trial, with its probes.
#include <limits>

#include "experiments/shared/training_steps.h"
#include "experiments/study/probe.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {
namespace {

using Probes = std::vector<std::unique_ptr<Probe>>;

bool IsDue(const Trainer& trainer) {
  const uint64_t every = trainer.config().telemetry.tensors_every;
  return trainer.status() == TrainStatus::kRunning && every != 0 &&
         trainer.steps_taken() % every == 0;
}

}  // namespace

Measurement::Measurement(
    const Study& study, const Settings& s, const Arm& a, uint64_t of_seed, Trainer& t)
    : settings(s), arm(a), seed(of_seed), trainer(t), rows(KeyOf(study, t.config(), a, of_seed)) {}

const LossSum& Measurement::Validation() {
  if (validated_ != trainer.steps_taken()) validation_ = trainer.Validate();
  validated_ = trainer.steps_taken();
  return validation_;
}

double Measurement::FinalLoss() {
  return Finished() ? Loss() : std::numeric_limits<double>::infinity();
}

Rows MeasureTraining(const Study& study, const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(study, trial);
  const TrainConfig config = ConfigOf(study, settings, arm, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  Measurement training(study, settings, arm, trial.seed, trainer);
  Probes probes;
  for (const ProbeSpec& probe : study.probes) probes.push_back(probe.make(training));
  const auto each = [&](void (Probe::*call)(Measurement&)) {
    for (const auto& probe : probes) (probe.get()->*call)(training);
  };

  training.start_loss = training.Loss();
  each(&Probe::Begin);
  each(&Probe::Moment);
  TrainingSteps loop(trial, trainer, [&](StateArchive& archive) {
    archive(training.rows);
    for (const auto& probe : probes) probe->Keep(archive);
  });
  while (loop.Next()) {
    each(&Probe::Before);
    trainer.Step();
    each(&Probe::After);
    trainer.telemetry().Clear();
    if (IsDue(trainer)) each(&Probe::Moment);
  }
  each(&Probe::Moment);
  each(&Probe::End);
  return training.rows.Take();
}

}  // namespace numsim::experiments::study
