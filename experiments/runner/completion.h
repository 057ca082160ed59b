// Turns the rows of finished trials into the files of a complete result directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/runner.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {

// The command that completes the results and the time at which it started, for the manifest.
struct Command {
  std::vector<std::string> arguments;
  std::string started = UtcNow();
  NamedTexts allowed = {};  // differences of merged shards
};

// Returns the trials of an experiment. Throws Error for a bad option and when there are no trials.
std::vector<Trial> ListTrials(const Experiment& experiment, const Settings& settings);

// Returns the claims as these trials decide them. Writes nothing. Requires the rows of every trial of
// the settings in `finished`, and no others.
std::vector<JudgedClaim> JudgeTrials(const Experiment& experiment,
                                     const Settings& settings,
                                     const FinishedTrials& finished);

// Returns the scale of a run; with --rows also that of the trainings, and where they are from.
RunScale ScaleOf(const Experiment& experiment, const Settings& settings, const Tables& tables);

// Adds the tables that the settings' --rows do not give to tables.not_given, without rows if `tables`
// lacks them.
void AddNotGiven(const Experiment& experiment, const Settings& settings, Tables& tables);

// Throws Error if rows of --rows do not suffice for tables, figures and claims. Writes nothing.
void CheckJudgeable(const Experiment& experiment,
                    const Settings& settings,
                    const FinishedTrials& finished);

// Draws the figures of `drawing` from the tables into `directory`. Adds their files to
// report.outputs, also those of other figures that are there, and sets the report's notice. Throws
// Error for a figure that the experiment does not have, before anything is written.
void WriteFigures(const Experiment& experiment,
                  const Settings& settings,
                  const Tables& tables,
                  const Drawing& drawing,
                  const std::filesystem::path& directory,
                  RunReport& report);

// Names of policies in manifest.json that are about the file of an experiment: the SHA-256 of the file
// that judged, and ExperimentFile::claims of those with which trials were measured, joined.
inline constexpr const char* kFilePolicy = "study file";
inline constexpr const char* kClaimsPolicy = "claims when measured";

// Returns the claims that are judged, for the manifest: id, contrast and margin.
NamedTexts ClaimTexts(const Experiment& experiment);

// Returns the names of a table's columns.
std::vector<std::string> ColumnNames(const TableSpec& table);

// Writes verdicts and summary into `directory`. Adds these files to report.outputs and sets the
// report's summary and claims. `measured` is the text of kClaimsPolicy.
void WriteSummary(const Experiment& experiment,
                  const Settings& settings,
                  const Tables& tables,
                  const std::string& measured,
                  const std::filesystem::path& directory,
                  RunReport& report);

// Writes tables, figures, summary and, last of all, the manifest into `directory`. Sets the
// report's outputs, summary, claims and notice. Requires the rows of every trial in `finished`, and
// a DirectoryLock held by the caller.
void Complete(const Experiment& experiment,
              const Settings& settings,
              FinishedTrials finished,
              const std::filesystem::path& directory,
              const Command& command,
              RunReport& report);

}  // namespace numsim::experiments
