// The directory of a training, as `numsim train` leaves it, as the evidence of a row of --rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/training_of_row.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

// Returns the SHA-256 of what `sha256sum config.toml summary.txt train.csv valid.csv` prints in that
// directory. Throws Error naming a file that is missing.
std::string RunDigest(const std::filesystem::path& directory);

struct TrainingRun {
  TrainConfig config;
  // The outcomes that the files state, as cells of the columns that have these names in the tables of
  // experiments: status, steps, parameters, start_loss (unless there was no validation at step 0), train_loss,
  // valid_loss, zero_shot, entropy_bound, m_bytes and v_bytes.
  std::map<std::string, std::string> outcomes;
};

// Reads a training that has ended. Throws Error naming a file that is missing or is not as a training
// leaves it.
TrainingRun ReadTrainingRun(const std::filesystem::path& directory);

// Returns true if `step` is one of steps, steps / 2, steps / 4, ..., so many of them, rounded down.
bool IsDoubling(uint64_t step, uint64_t steps, int64_t validations);

// The validations of a run directory at the doublings of a training.
struct DoublingLosses {
  std::map<uint64_t, std::string> losses;  // by the number of steps taken; 0 is the start
  // The outcome early_loss: that of the first doubling whose loss is a number, "inf" for a training that
  // diverged before one, empty if its validations were at other steps.
  std::string early_loss;
};
DoublingLosses ReadDoublings(const std::filesystem::path& directory,
                             uint64_t steps,
                             int64_t validations);
// Returns those of a training, none if its rows have no table of them, and adds early_loss, if it is
// known, to the outcomes of its run.
DoublingLosses AddDoublings(const std::filesystem::path& directory,
                            const TrainingOfRow& training,
                            TrainingRun& run);

// Returns the loss of each recorded step of its train.csv, by the number of steps taken after it.
std::map<uint64_t, double> ReadLosses(const std::filesystem::path& directory);

// The keys in which the configuration of a run differs from another, each as "KEY is VALUE, not VALUE".
// Keys that only say what is recorded, and when, are left out.
struct ConfigDifferences {
  std::vector<std::string> of_data = {};  // keys of the data: the same training may read others
  std::vector<std::string> others = {};
};
ConfigDifferences CompareConfigs(const TrainConfig& run, const TrainConfig& expected);

}  // namespace numsim::experiments
