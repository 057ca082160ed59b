// The steps of a training inside a trial, which continues at its step after a stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "experiments/runner/experiment.h"
#include "experiments/runner/trial_context.h"
#include "experiments/shared/state_archive.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments {

// Every training of an experiment takes its steps in such a loop:
//   TrainingSteps loop(trial, trainer, [&](StateArchive& archive) { archive(rows, curve); });
//   while (loop.Next()) {
//     trainer.Step();
//     ...
//   }
// The list names all variables that the measurement carries from one step to the next or to its end,
// beside the trainer. It does nothing in a trial without a context.
class TrainingSteps {
 public:
  // Restores trainer and variables if the trial has a checkpoint of this training, which only a later
  // stop or the end of the trial replaces. A trial with several trainings names them. Both `trial` and
  // `trainer` must outlive this. Throws TrialRestarts, after saying why, if the checkpoint is damaged,
  // or of another build, trial or settings.
  TrainingSteps(const Trial& trial,
                Trainer& trainer,
                std::function<void(StateArchive&)> keep,
                std::string name = "training");

  // Returns whether there is a step to take. Saves a checkpoint when one is due, and when the trial is
  // to stop; then it throws TrialStopped. Throws Error if the checkpoint cannot be written.
  bool Next();
  // Whether the constructor restored a checkpoint.
  bool restored() const { return restored_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Restore();
  void Save();

  const TrialContext* context_;  // nullptr: nothing is saved
  std::string label_;
  Trainer& trainer_;
  std::function<void(StateArchive&)> keep_;
  std::string name_;
  bool restored_ = false;
  uint64_t saved_ = 0;  // steps taken at the last checkpoint
  Clock::time_point saved_at_ = Clock::now();
};

}  // namespace numsim::experiments
