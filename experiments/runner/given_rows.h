// Rows of trainings that were made elsewhere, in place of the trials of a run (`--rows`,
// docs/rows.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/rows_argument.h"
#include "experiments/runner/training_of_row.h"

namespace numsim::experiments {

// A training of the settings.
struct WantedTraining {
  size_t trial = 0;  // number of its trial
  TrainingOfRow training;

  // Returns "m=e4m3fn v=e5m2 seed=0".
  std::string Text(const Experiment& experiment) const;
};

// Returns the trainings of all trials, in their order. Throws Error for a bad option, and if the
// experiment does not take --rows.
std::vector<WantedTraining> ListTrainings(const Experiment& experiment, const Settings& settings);

// Columns of the file of trainings beside those of its table.
inline constexpr std::string_view kParametersColumn = "parameters";  // unless the table has it
inline constexpr std::string_view kTokensColumn = "trained_tokens";
inline constexpr std::string_view kRunColumn = "run";
inline constexpr std::string_view kDigestColumn = "digest";
// Returns the columns of the file of trainings.
std::vector<std::string> ColumnsOfRows(const Experiment& experiment);

// Return the tokens of a step of a training, or the examples if it is no language model, and which of
// the two they are: "tokens" or "examples".
double TokensPerStep(const TrainConfig& config);
std::string_view UnitOfTokens(const TrainConfig& config);

// Returns the rows of the trials of the settings, of those that the files have, and describes the
// files in settings.rows. Throws Error naming file, line and column for everything that is not as
// docs/rows.md says.
FinishedTrials ReadRows(const Experiment& experiment,
                        const std::vector<RowsArgument>& files,
                        Settings& settings);

}  // namespace numsim::experiments
