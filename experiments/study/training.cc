// Runs the training of a trial, with its probes.
#include <limits>

#include "experiments/shared/training_steps.h"
#include "experiments/study/fork_start.h"
#include "experiments/study/measured_training.h"
#include "experiments/study/probe.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {
namespace {

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

MeasuredTraining::MeasuredTraining(
    const Study& study, const Settings& settings, const Arm& arm, uint64_t seed, Trainer& trainer)
    : training_(study, settings, arm, seed, trainer) {
  for (const ProbeSpec& probe : study.probes) probes_.push_back(probe.make(training_));
}

void MeasuredTraining::Each(void (Probe::*call)(Measurement&)) {
  for (const auto& probe : probes_) (probe.get()->*call)(training_);
}

void MeasuredTraining::Begin() {
  training_.start_loss = training_.Loss();
  Each(&Probe::Begin);
  Each(&Probe::Moment);
}

void MeasuredTraining::Step() {
  Trainer& trainer = training_.trainer;
  trainer.ForkIfDue();
  Each(&Probe::Before);
  trainer.Step();
  Each(&Probe::After);
  trainer.telemetry().Clear();
  if (IsDue(trainer)) Each(&Probe::Moment);
}

Rows MeasuredTraining::End() {
  Each(&Probe::Moment);
  Each(&Probe::End);
  return training_.rows.Take();
}

void MeasuredTraining::Keep(StateArchive& archive) {
  archive(training_.rows);
  for (const auto& probe : probes_) probe->Keep(archive);
}

void MeasuredTraining::GoOnFrom(StateArchive& archive, double start_loss) {
  Keep(archive);
  archive.RequireEnd();
  training_.rows.Rekey();
  training_.start_loss = start_loss;
}

Rows MeasureTraining(const Study& study, const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(study, trial);
  const TrainConfig config = ConfigOf(study, settings, arm, trial.seed);
  const bool forks = config.fork.steps > 0;
  Trainer trainer(config, OpenData(config.data));
  MeasuredTraining training(study, settings, arm, trial.seed, trainer);
  if (!forks) training.Begin();
  TrainingSteps loop(trial, trainer, [&](StateArchive& archive) {
    training.Keep(archive);
    if (forks) archive(training.start_loss());
  });
  if (forks && !loop.restored()) {
    SavedTraining start = ForkStart(study, settings, trial, trainer.config());
    trainer.RestoreBaseline(start.state);
    GoOnFromStart(std::move(start), training);
  }
  while (loop.Next()) training.Step();
  return training.End();
}

}  // namespace numsim::experiments::study
