#include "numsim/train/run.h"

#include <string>

#include "numsim/io/manifest.h"
#include "numsim/train/internal/run_summary.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

void ReportProgress(const TrainRunOptions& options, const Trainer& trainer) {
  if (!options.progress) return;
  const auto timed = static_cast<double>(trainer.steps_timed());
  const double each = trainer.step_seconds() / timed;
  const auto left = static_cast<double>(trainer.config().train.steps - trainer.steps_taken());
  options.progress(trainer, static_cast<double>(trainer.tokens_per_step()) / each, left * each);
}

// Takes steps until the training ends or is interrupted. The last state is saved in the checkpoint.
void TakeSteps(const TrainRunOptions& options, Trainer& trainer, OpenRun& run) {
  const uint64_t every = trainer.config().checkpoint.every;
  while (trainer.status() == TrainStatus::kRunning) {
    trainer.Step();
    run.files().Append(trainer.telemetry());
    ReportProgress(options, trainer);
    const bool interrupted = options.interrupted != nullptr && options.interrupted->load();
    const bool ended = trainer.status() != TrainStatus::kRunning;
    if (ended || interrupted || (every > 0 && trainer.steps_taken() % every == 0)) {
      run.SaveCheckpoint(trainer.Save());
    }
    if (interrupted) return;
  }
}

}  // namespace

TrainRunResult RunTraining(const TrainConfig& config, const TrainRunOptions& options) {
  const std::string started = UtcNow();
  Trainer trainer(config, OpenData(config.data));
  OpenRun run(
      options.out,
      trainer.config(),
      options.resume,
      [&](const TrainState& state) { trainer.Restore(state); },
      options.notice);
  TakeSteps(options, trainer, run);
  const RunFacts facts = FactsOf(trainer);
  TrainRunResult result = ResultOf(facts);
  const bool ended = result.status != TrainStatus::kRunning;
  result.speed = MeasureSpeed(trainer, ended);
  if (ended) {
    const RunOrigin origin{options.out, options.figures, options.command, {}, started};
    WriteResults(facts, origin, result);
  }
  return result;
}

}  // namespace numsim
