#include "experiments/shared/training_steps.h"

#include <fmt/format.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/train/checkpoint.h"

namespace numsim::experiments {
namespace {

constexpr const char* kVariables = "trial/variables";  // a tensor of the checkpoint

std::string FieldOf(const std::string& name) { return "trial." + name; }

// Throws Error naming the first difference.
void RequireIdentity(const TrialContext& context, const TrainState& state) {
  for (const auto& [name, expected] : context.identity) {
    const std::string& found = state.Field(FieldOf(name));
    if (found == expected) continue;
    throw Error::Format("is of {} '{}', expected '{}'", name, found, expected);
  }
}

}  // namespace

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
    const TrainState state = ReadCheckpoint(path);
    RequireIdentity(*context_, state);
    trainer_.Restore(state);
    const Array* const variables = state.FindTensor(kVariables);
    if (variables == nullptr) throw Error::Format("tensor '{}' is missing", kVariables);
    const auto* const bytes = reinterpret_cast<const char*>(variables->bytes.data());
    StateArchive archive(std::string(bytes, variables->bytes.size()));
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
  TrainState state = trainer_.Save();
  for (const auto& [name, text] : context_->identity)
    state.fields.emplace_back(FieldOf(name), text);
  StateArchive archive;
  keep_(archive);
  Array variables;
  variables.type = ElementType::kU8;
  variables.shape = {archive.bytes().size()};
  variables.bytes.resize(archive.bytes().size());
  std::memcpy(variables.bytes.data(), archive.bytes().data(), archive.bytes().size());
  state.tensors.emplace_back(kVariables, std::move(variables));
  WriteCheckpoint(CheckpointOf(*context_, name_), state);
  saved_ = trainer_.steps_taken();
  saved_at_ = Clock::now();
}

}  // namespace numsim::experiments
