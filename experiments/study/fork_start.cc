#include "experiments/study/fork_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "experiments/runner/trial_context.h"
#include "experiments/shared/training_steps.h"
#include "numsim/config/fork.h"

namespace numsim::experiments::study {
namespace {

// Returns a lock for the file, which all threads of the process share.
std::shared_ptr<std::mutex> LockOf(const std::filesystem::path& path) {
  static std::mutex all;
  static std::map<std::filesystem::path, std::weak_ptr<std::mutex>> locks;
  const std::lock_guard<std::mutex> lock(all);
  std::shared_ptr<std::mutex> one = locks[path].lock();
  if (one == nullptr) locks[path] = one = std::make_shared<std::mutex>();
  return one;
}

// Trains the baseline to the fork. The measurement is that of the baseline's own arm, so that the result
// does not depend on which arm needed it first.
SavedTraining TrainToFork(const Study& study,
                          const Settings& settings,
                          const Trial& trial,
                          const TrainConfig& config) {
  const Arm arm = study.forks_from(settings, ArmOf(study, trial));
  const TrainConfig baseline = BaselineOf(config);
  Trainer trainer(baseline, OpenData(baseline.data));
  MeasuredTraining training(study, settings, arm, trial.seed, trainer);
  training.Begin();
  TrainingSteps loop(
      trial, trainer, [&](StateArchive& archive) { training.Keep(archive); }, "baseline");
  while (trainer.steps_taken() < config.fork.steps && loop.Next()) training.Step();
  StateArchive archive;
  archive(training.start_loss());
  training.Keep(archive);
  return {.state = trainer.Save(), .variables = archive.bytes()};
}

// Returns the identity of a baseline: all trials of these settings and of this build go on from it.
NamedTexts IdentityOf(const TrialContext& context, const TrainConfig& config) {
  NamedTexts identity = context.identity;
  std::erase_if(identity, [](const auto& part) { return part.first == kTrialIdentity; });
  identity.emplace_back("baseline", WriteTrainConfig(BaselineOf(config)));
  identity.emplace_back("fork", fmt::format("{}", config.fork.steps));
  return identity;
}

}  // namespace

SavedTraining ForkStart(const Study& study,
                        const Settings& settings,
                        const Trial& trial,
                        const TrainConfig& config) {
  if (trial.context == nullptr) return TrainToFork(study, settings, trial, config);
  const NamedTexts identity = IdentityOf(*trial.context, config);
  const std::filesystem::path path =
      ForkFile(*trial.context, WriteTrainConfig(BaselineOf(config)), config.fork.steps);
  const std::shared_ptr<std::mutex> lock = LockOf(path);
  const std::lock_guard<std::mutex> guard(*lock);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    try {
      return ReadSavedTraining(path, identity);
    } catch (const Error& error) {
      trial.context->say(fmt::format("the baseline is trained anew, because {} cannot be used: {}",
                                     path.string(),
                                     error.what()));
    }
  }
  SavedTraining start = TrainToFork(study, settings, trial, config);
  WriteSavedTraining(path, identity, start);
  return start;
}

void GoOnFromStart(SavedTraining start, MeasuredTraining& training) {
  StateArchive archive(std::move(start.variables));
  double start_loss = 0;
  archive(start_loss);
  training.GoOnFrom(archive, start_loss);
}

}  // namespace numsim::experiments::study
