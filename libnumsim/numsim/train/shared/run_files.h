// The directory of a training: whose it is, and the CSV files that grow in it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/telemetry.h"
#include "numsim/train/trainer.h"

namespace numsim {

inline constexpr const char* kConfigFile = "config.toml";
inline constexpr const char* kCheckpointFile = "checkpoint.safetensors";
inline constexpr const char* kSummaryFile = "summary.txt";
inline constexpr const char* kManifestFile = "manifest.json";

// "train.csv" for the table "train".
std::string CsvFile(std::string_view table);

// What a training finds in its directory.
enum class RunDirectory : uint8_t {
  kNew,         // nothing of a training
  kBegun,       // a training of this configuration that has no checkpoint yet
  kCheckpoint,  // one that has
};

// Changes nothing. `config` is that after FitToData. Throws Error "DIRECTORY: holds ..." for files
// of another training, or of any without `resume`; kCheckpoint: the configuration of the checkpoint
// is not looked at.
RunDirectory InspectRunDirectory(const std::filesystem::path& directory,
                                 const TrainConfig& config,
                                 bool resume);

// Throws Error naming --out.
void MakeRunDirectory(const std::filesystem::path& directory);

// Puts the trainer where the directory's checkpoint left it; returns the checkpoint. Throws Error
// naming the file.
TrainState RestoreCheckpoint(const std::filesystem::path& directory, Trainer& trainer);

// Removes the files of those names, as far as they are there. Throws Error naming the file.
void RemoveFiles(const std::filesystem::path& directory, const std::vector<std::string>& names);

// The tables of telemetry as files, one each, to which rows are appended.
class CsvFiles {
 public:
  // Files with their headers and no rows; those that are there are replaced.
  explicit CsvFiles(const std::filesystem::path& directory);
  // Files as they were when RecordLengths wrote to `state`: what follows is cut off. Throws Error
  // naming a file that is shorter, not there, or of other columns, before any is cut.
  CsvFiles(const std::filesystem::path& directory, const TrainState& state);

  // Writes the rows of `telemetry` and clears it. Throws Error naming the file.
  void Append(Telemetry& telemetry);
  // Adds a field for each file to `state`.
  void RecordLengths(TrainState& state) const;

 private:
  struct File {
    std::filesystem::path path;
    std::string table;
    uint64_t length = 0;
    std::ofstream stream;
  };
  void Open();

  std::vector<File> files_;
};

}  // namespace numsim
