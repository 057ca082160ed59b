#include "numsim/train/shared/run_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/durable.h"
#include "numsim/io/input_file.h"
#include "numsim/train/internal/continuation.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

std::string LengthField(std::string_view table) { return "length." + CsvFile(table); }
std::string DigestField(std::string_view table) { return "sha256." + CsvFile(table); }

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Returns the rows of a table without its header. Column names have no line breaks.
std::string RowsText(const Table& table) {
  const std::string text = ToCsv(table);
  return text.substr(text.find('\n') + 1);
}

// Throws Error unless the file begins with the current header of the table.
void CheckColumns(const fs::path& path, const Table& empty) {
  const std::string header = ToCsv(empty);
  std::string found(header.size(), ' ');
  std::ifstream file(path, std::ios::binary);
  file.read(found.data(), static_cast<std::streamsize>(found.size()));
  if (file && found == header) return;
  throw Error::Format("{}: the columns are those of another version of numsim", path.string());
}

// Restores the checkpoint of the directory and returns it. Throws Error naming the file.
TrainState RestoreCheckpoint(const fs::path& directory,
                             const std::function<void(TrainState&)>& restore) {
  const fs::path path = directory / kCheckpointFile;
  TrainState state = ReadCheckpoint(path);
  try {
    restore(state);
  } catch (const Error& error) {
    throw Error::Format("{}: {}", path.string(), error.what());
  }
  return state;
}

// Removes the files that mark a complete run, so that an incomplete run does not look complete, and
// writes the configuration.
void MarkIncomplete(const fs::path& directory, const TrainConfig& config) {
  RemoveFiles(directory, {kManifestFile, kSummaryFile});
  WriteFileAtomically(directory / kConfigFile, WriteTrainConfig(config));
}

// Returns a line which says that there is nothing to resume, because a mistyped directory would train
// unnoticed.
std::string NothingToResume(const fs::path& directory) {
  return fmt::format("no checkpoint in {}{}: starting at step 0",
                     directory.string(),
                     Exists(directory) ? "" : ", which does not exist");
}

}  // namespace

std::string CsvFile(std::string_view table) { return std::string(table) + ".csv"; }

RunDirectory InspectRunDirectory(const fs::path& directory,
                                 const TrainConfig& config,
                                 bool resume) {
  std::vector<std::string> names = {kConfigFile, kCheckpointFile, kSummaryFile, kManifestFile};
  for (const TelemetryTable& table : TelemetryTables()) names.push_back(CsvFile(table.name));
  std::string found;
  for (const std::string& name : names) {
    if (found.empty() && Exists(directory / name)) found = name;
  }
  if (found.empty()) return RunDirectory::kNew;
  if (!resume) {
    throw Error::Format(
        "{}: holds {} of a training; continue it with --resume or use another --out",
        directory.string(),
        found);
  }
  if (Exists(directory / kCheckpointFile)) return RunDirectory::kCheckpoint;
  const fs::path began = directory / kConfigFile;
  if (!Exists(began)) {
    throw Error::Format(
        "{}: holds {} but neither {} nor {}, so its origin is unknown; use another --out",
        directory.string(),
        found,
        kCheckpointFile,
        kConfigFile);
  }
  try {
    CheckContinues(config, ReadText(began));
  } catch (const Error& error) {
    throw Error::Format("{}: {}", began.string(), error.what());
  }
  return RunDirectory::kBegun;
}

void MakeRunDirectory(const fs::path& directory) {
  if (const std::error_code status = MakeDirectories(directory)) {
    throw Error::Format("--out {}: cannot create it: {}", directory.string(), status.message());
  }
}

bool RestoreIfSaved(const fs::path& directory, Trainer& trainer) {
  const RunDirectory found = InspectRunDirectory(directory, trainer.config(), true);
  const bool saved = found == RunDirectory::kCheckpoint;
  if (saved) {
    RestoreCheckpoint(directory, [&](const TrainState& state) { trainer.Restore(state); });
  }
  const uint64_t fork = trainer.config().fork.steps;
  if (trainer.steps_taken() < fork) {
    throw Error::Format(
        "{}: {} steps were taken, and only steps behind the fork (fork.steps = {}) can be looked at: "
        "train on first",
        directory.string(),
        trainer.steps_taken(),
        fork);
  }
  trainer.ForkIfDue();
  return saved;
}

void RemoveFiles(const fs::path& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const std::error_code status = RemoveFile(directory / name)) {
      throw Error::Format(
          "{}: cannot be removed: {}", (directory / name).string(), status.message());
    }
  }
}

CsvFiles::CsvFiles(const fs::path& directory, const TrainConfig& config) {
  const Telemetry empty;
  for (const TelemetryTable& table : TelemetryTables(config)) {
    const fs::path path = directory / CsvFile(table.name);
    const std::string header = ToCsv(empty.Of(table.name));
    WriteFileAtomically(path, header);
    File& file = files_.emplace_back(File{path, std::string(table.name), header.size()});
    file.digest.Add(header);
  }
  Open();
}

CsvFiles::CsvFiles(const fs::path& directory, const TrainConfig& config, const TrainState& state) {
  const Telemetry empty;
  for (const TelemetryTable& table : TelemetryTables(config)) {
    const fs::path path = directory / CsvFile(table.name);
    const uint64_t length = state.Count(LengthField(table.name));
    std::error_code status;
    const uint64_t found = fs::file_size(path, status);
    if (status) throw Error::Format("{}: {}", path.string(), status.message());
    if (found < length) {
      throw Error::Format("{}: has {} bytes but had {} when the checkpoint was written",
                          path.string(),
                          found,
                          length);
    }
    CheckColumns(path, empty.Of(table.name));
    File& file = files_.emplace_back(File{path, std::string(table.name), length});
    file.digest = Sha256OfStart(path, length);
    if (file.digest.Hex() != state.Field(DigestField(table.name))) {
      throw Error::Format(
          "{}: its first {} bytes have been changed since the checkpoint was written; restore them, "
          "or delete the checkpoint to train from the start",
          path.string(),
          length);
    }
  }
  for (const File& file : files_) {
    std::error_code status;
    fs::resize_file(file.path, file.length, status);
    if (status)
      throw Error::Format("{}: cannot be truncated: {}", file.path.string(), status.message());
  }
  Open();
}

void CsvFiles::Open() {
  for (File& file : files_) {
    file.stream.open(file.path, std::ios::binary | std::ios::app);
    if (!file.stream) throw Error::Format("{}: cannot be opened for writing", file.path.string());
  }
}

void CsvFiles::Append(Telemetry& telemetry) {
  for (File& file : files_) {
    const Table& table = telemetry.Of(file.table);
    if (table.rows.empty()) continue;
    const std::string text = RowsText(table);
    file.stream << text << std::flush;
    if (!file.stream) {
      throw Error::Format(
          "{}: cannot write: {}", file.path.string(), std::generic_category().message(errno));
    }
    file.length += text.size();
    file.digest.Add(text);
  }
  telemetry.Clear();
}

void CsvFiles::Sync() const {
  for (const File& file : files_) {
    if (const std::error_code status = SyncPath(file.path)) {
      throw Error::Format("{}: cannot write: {}", file.path.string(), status.message());
    }
  }
}

void CsvFiles::RecordLengths(TrainState& state) const {
  for (const File& file : files_) {
    state.fields.emplace_back(LengthField(file.table), FormatCell(file.length));
    state.fields.emplace_back(DigestField(file.table), file.digest.Hex());
  }
}

OpenRun::OpenRun(const fs::path& directory,
                 const TrainConfig& config,
                 bool resume,
                 const std::function<void(TrainState&)>& restore,
                 const std::function<void(const std::string&)>& notice)
    : directory_(directory) {
  const bool has_checkpoint =
      InspectRunDirectory(directory, config, resume) == RunDirectory::kCheckpoint;
  if (resume && !has_checkpoint && notice) notice(NothingToResume(directory));
  MakeRunDirectory(directory);
  lock_.emplace(directory / kLockFile, DirectoryLock::IfHeld::kThrow);
  SweepTemporaries(directory);
  // Again, because another process may have trained there before the lock was taken.
  if (InspectRunDirectory(directory, config, resume) != RunDirectory::kCheckpoint) {
    MarkIncomplete(directory, config);
    files_.emplace(directory, config);
    return;
  }
  const TrainState state = RestoreCheckpoint(directory, restore);
  files_.emplace(directory, config, state);
  MarkIncomplete(directory, config);
}

// The checkpoint must not outlive the rows in a loss of power.
void OpenRun::SaveCheckpoint(TrainState state) const {
  files_->Sync();
  files_->RecordLengths(state);
  WriteCheckpoint(directory_ / kCheckpointFile, state);
}

}  // namespace numsim
