// From the rows of finished trials to the files of a complete result directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/core/experiment.h"
#include "experiments/core/result_directory.h"
#include "experiments/core/runner.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {

// The command that completes the results and when it began: for the manifest.
struct Command {
  std::vector<std::string> arguments;
  std::string started = UtcNow();
};

// The points of an experiment. Throws Error for a bad option and when there are none.
std::vector<Trial> ListTrials(const Experiment& experiment, const Settings& settings);

// Draws the figures and writes the summary into `directory`. Adds the files to the report's outputs
// and sets its summary, claims and notice.
void WriteFiguresAndSummary(const Experiment& experiment,
                            const Settings& settings,
                            const Tables& tables,
                            const std::filesystem::path& directory,
                            RunReport& report);

// Writes tables, figures, summary and, last of all, the manifest into `directory`; sets `outputs`,
// `summary`, `claims` and `notice` of the report. Requires the rows of every point and a
// DirectoryLock.
void Complete(const Experiment& experiment,
              const Settings& settings,
              const FinishedTrials& finished,
              const std::filesystem::path& directory,
              const Command& command,
              RunReport& report);

}  // namespace numsim::experiments
