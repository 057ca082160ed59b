#include "experiments/shared/training_steps.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "experiments/shared/saved_training.h"
#include "numsim/base/error.h"

namespace numsim::experiments {

TrainingSteps::TrainingSteps(const Trial& trial,
                             Trainer& trainer,
                             std::function<void(StateArchive&)> keep,
                             std::string name)
    : context_(trial.context),
      label_(trial.label),
      trainer_(trainer),
      keep_(std::move(keep)),
      name_(std::move(name)) {
  if (context_ != nullptr && context_->restore) Restore();
}

void TrainingSteps::Restore() {
  const std::filesystem::path path = CheckpointOf(*context_, name_);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  try {
    SavedTraining saved = ReadSavedTraining(path, context_->identity);
    trainer_.Restore(saved.state);
    StateArchive archive(std::move(saved.variables));
    keep_(archive);
    archive.RequireEnd();
  } catch (const Error& error) {
    context_->say(
        fmt::format("trial \"{}\" begins anew, because its checkpoint cannot be used: {}: {}",
                    label_,
                    path.string(),
                    error.what()));
    throw TrialRestarts();
  }
  restored_ = true;
  saved_ = trainer_.steps_taken();
  context_->say(fmt::format("trial \"{}\" continues at step {}", label_, saved_));
}

bool TrainingSteps::Next() {
  const bool running = trainer_.status() == TrainStatus::kRunning;
  if (context_ == nullptr) return running;
  const std::chrono::duration<double> since = Clock::now() - saved_at_;
  // The end of a training is saved if much would be lost: others of the trial may follow.
  constexpr double kMuch = 0.1;
  const bool due = since.count() >= context_->save_every * (running ? 1 : kMuch);
  const bool stop = context_->stop();
  if ((due || stop) && trainer_.steps_taken() != saved_) Save();
  if (stop) throw TrialStopped();
  return running;
}

void TrainingSteps::Save() {
  StateArchive archive;
  keep_(archive);
  WriteSavedTraining(CheckpointOf(*context_, name_),
                     context_->identity,
                     {.state = trainer_.Save(), .variables = archive.bytes()});
  saved_ = trainer_.steps_taken();
  saved_at_ = Clock::now();
}

}  // namespace numsim::experiments
