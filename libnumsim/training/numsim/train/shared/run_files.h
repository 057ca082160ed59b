// The directory of a training: checks what it contains, and writes its growing CSV files.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/shared/sha256.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/telemetry.h"
#include "numsim/train/trainer.h"

namespace numsim {

inline constexpr const char* kConfigFile = "config.toml";
inline constexpr const char* kCheckpointFile = "checkpoint.safetensors";
inline constexpr const char* kSummaryFile = "summary.txt";
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kLockFile = ".lock";  // held by the process that trains there

// Returns the file name of a table: "train.csv" for the table "train".
std::string CsvFile(std::string_view table);

// The state of the directory in which a training starts.
enum class RunDirectory : uint8_t {
  kNew,         // has no files of a training
  kBegun,       // has a training of this configuration without a checkpoint
  kCheckpoint,  // has a checkpoint
};

// Returns the state of the directory, without changing it. `config` is the configuration after
// FitToData. Throws Error "DIRECTORY: holds ..." if the directory has files of another training, or
// of any training unless `resume` is true. For kCheckpoint, does not check the checkpoint's
// configuration.
RunDirectory InspectRunDirectory(const std::filesystem::path& directory,
                                 const TrainConfig& config,
                                 bool resume);

// Creates the directory with its parents. Throws Error naming --out on failure.
void MakeRunDirectory(const std::filesystem::path& directory);

// Restores the trainer from the directory's checkpoint, if it has one, and returns whether it has.
// Its next step is then one behind the fork, if it has one. Does not change the directory. Throws Error
// as InspectRunDirectory does, naming the file, and before the fork.
bool RestoreIfSaved(const std::filesystem::path& directory, Trainer& trainer);

// Removes the named files; missing files are ignored. Throws Error naming the file.
void RemoveFiles(const std::filesystem::path& directory, const std::vector<std::string>& names);

// The telemetry tables of a configuration as CSV files, one per table, to which rows are appended.
class CsvFiles {
 public:
  // Creates files with headers and no rows, replacing existing files.
  CsvFiles(const std::filesystem::path& directory, const TrainConfig& config);
  // Truncates the files to the lengths that RecordLengths wrote to `state`. Throws Error naming a
  // file that is shorter, missing, has other columns, or whose kept bytes were changed since; no file
  // is truncated in that case.
  CsvFiles(const std::filesystem::path& directory,
           const TrainConfig& config,
           const TrainState& state);

  // Writes the rows of `telemetry` and clears it. Throws Error naming the file.
  void Append(Telemetry& telemetry);
  // Waits until what was written survives a loss of power. Throws Error naming the file.
  void Sync() const;
  // Adds fields with the length and the SHA-256 of each file to `state`.
  void RecordLengths(TrainState& state) const;

 private:
  struct File {
    std::filesystem::path path;
    std::string table;
    uint64_t length = 0;
    Sha256 digest = {};  // of these bytes
    std::ofstream stream = {};
  };
  void Open();

  std::vector<File> files_;
};

// The directory of a training that runs: locked, and with the files of its steps.
class OpenRun {
 public:
  // Starts a training in the directory, or continues the one that it has: `restore` then gets the
  // checkpoint, and may throw Error. `config` is one after FitToData. `notice` may be empty; it gets a
  // line for the user if there is nothing to resume. Throws Error as RunTraining does.
  OpenRun(const std::filesystem::path& directory,
          const TrainConfig& config,
          bool resume,
          const std::function<void(TrainState&)>& restore,
          const std::function<void(const std::string&)>& notice);

  CsvFiles& files() { return *files_; }
  // Writes the checkpoint. All rows so far must be in the files, whose lengths it records.
  void SaveCheckpoint(TrainState state) const;

 private:
  std::filesystem::path directory_;
  std::optional<DirectoryLock> lock_;
  std::optional<CsvFiles> files_;
};

}  // namespace numsim
