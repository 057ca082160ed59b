#include "numsim/train/run.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include "numsim/io/atomic_file.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/manifest.h"
#include "numsim/train/internal/run_summary.h"
#include "numsim/train/internal/what_if_report.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

// Removes the files that mark a complete run, so that an incomplete run does not look complete.
void RemoveResults(const fs::path& directory) {
  RemoveFiles(directory, {kManifestFile, kSummaryFile});
}

// Restores the trainer from the directory's checkpoint and returns its CSV files.
CsvFiles Resume(const fs::path& directory, Trainer& trainer) {
  const TrainState state = RestoreCheckpoint(directory, trainer);
  CsvFiles files(directory, trainer.config(), state);
  RemoveResults(directory);
  WriteFileAtomically(directory / kConfigFile, WriteTrainConfig(trainer.config()));
  return files;
}

CsvFiles Begin(const fs::path& directory, const Trainer& trainer) {
  RemoveResults(directory);
  WriteFileAtomically(directory / kConfigFile, WriteTrainConfig(trainer.config()));
  return CsvFiles(directory, trainer.config());
}

// Requires that all rows so far are in the files, because the checkpoint records the file lengths. It
// must not outlive them in a loss of power.
void SaveCheckpoint(const fs::path& directory, const Trainer& trainer, const CsvFiles& files) {
  files.Sync();
  TrainState state = trainer.Save();
  files.RecordLengths(state);
  WriteCheckpoint(directory / kCheckpointFile, state);
}

void ReportProgress(const TrainRunOptions& options, const Trainer& trainer) {
  if (!options.progress) return;
  const auto timed = static_cast<double>(trainer.steps_timed());
  const double each = trainer.step_seconds() / timed;
  const auto left = static_cast<double>(trainer.config().train.steps - trainer.steps_taken());
  options.progress(trainer, static_cast<double>(trainer.tokens_per_step()) / each, left * each);
}

// Takes steps until the training ends or is interrupted. The last state is saved in the checkpoint.
void TakeSteps(const TrainRunOptions& options, Trainer& trainer, CsvFiles& files) {
  const uint64_t every = trainer.config().checkpoint.every;
  while (trainer.status() == TrainStatus::kRunning) {
    trainer.Step();
    files.Append(trainer.telemetry());
    ReportProgress(options, trainer);
    const bool interrupted = options.interrupted != nullptr && options.interrupted->load();
    const bool ended = trainer.status() != TrainStatus::kRunning;
    if (ended || interrupted || (every > 0 && trainer.steps_taken() % every == 0)) {
      SaveCheckpoint(options.out, trainer, files);
    }
    if (interrupted) return;
  }
}

// Says that there is nothing to resume, because a mistyped directory would train unnoticed.
void NoteMissingCheckpoint(const TrainRunOptions& options) {
  if (!options.notice) return;
  std::error_code ignored;
  const bool exists = fs::exists(options.out, ignored);
  options.notice(fmt::format("no checkpoint in {}{}: starting at step 0",
                             options.out.string(),
                             exists ? "" : ", which does not exist"));
}

}  // namespace

TrainRunResult RunTraining(const TrainConfig& config, const TrainRunOptions& options) {
  const std::string started = UtcNow();
  Trainer trainer(config, OpenData(config.data));
  if (InspectRunDirectory(options.out, trainer.config(), options.resume) !=
          RunDirectory::kCheckpoint &&
      options.resume) {
    NoteMissingCheckpoint(options);
  }
  MakeRunDirectory(options.out);
  const DirectoryLock lock(options.out / kLockFile, DirectoryLock::IfHeld::kThrow);
  SweepTemporaries(options.out);
  // Again, because another process may have trained there before the lock was taken.
  const RunDirectory found = InspectRunDirectory(options.out, trainer.config(), options.resume);
  CsvFiles files = found == RunDirectory::kCheckpoint ? Resume(options.out, trainer)
                                                      : Begin(options.out, trainer);
  TakeSteps(options, trainer, files);

  TrainRunResult result;
  result.status = trainer.status();
  result.reason = trainer.reason();
  result.steps = trainer.steps_taken();
  result.train_loss = trainer.recent_loss();
  result.valid_loss = trainer.last_validation().has_value()
                          ? trainer.last_validation()->Mean()
                          : std::numeric_limits<double>::quiet_NaN();
  result.files = {kConfigFile, kCheckpointFile};
  for (const TelemetryTable& table : TelemetryTables(trainer.config())) {
    result.files.push_back(CsvFile(table.name));
  }
  const bool ended = result.status != TrainStatus::kRunning;
  result.speed = MeasureSpeed(trainer, ended);
  if (!ended) return result;
  const Table train = ReadCsv(options.out / CsvFile("train"));
  if (options.figures) {
    for (std::string& file : DrawCurves(trainer, train, options.out)) {
      result.files.push_back(std::move(file));
    }
  }
  result.summary = SummaryText(trainer) + SpikesText(trainer.config(), train) +
                   WhatIfText(trainer.config(), options.out);
  WriteFileAtomically(options.out / kSummaryFile, result.summary);
  result.files.emplace_back(kSummaryFile);
  WriteRunManifest(trainer, options, result, started);
  result.files.emplace_back(kManifestFile);
  return result;
}

}  // namespace numsim
