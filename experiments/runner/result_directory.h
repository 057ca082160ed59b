// The content of a result directory: settings, journals and outputs. Implements the rules of
// runner.h about which results may be continued, replaced or combined.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/runner/settings.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {

// Returns true if the file exists; false also if that cannot be determined.
bool Exists(const std::filesystem::path& path);

inline constexpr std::string_view kSettingsFile = "settings.json";
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kSummaryFile = "summary.txt";
inline constexpr std::string_view kVerdictsFile = "verdicts.csv";
inline constexpr std::string_view kJournalFolder = "journal";
inline constexpr std::string_view kLockFile = "lock";  // in that folder

// The rows of one finished trial, what measured them and how long it took (as in FinishedTrial), and the
// journal that holds them.
struct FinishedRows {
  Rows rows;
  std::string commit, build, processor;
  double seconds = 0;
  std::filesystem::path journal;
  std::string claims = {};
};

// Finished rows by index of the trial.
using FinishedTrials = std::map<size_t, FinishedRows>;

// Throws Error when `directory` holds results of other settings (the first difference is named), or
// a file with the name of an output but no settings.json: such a file is not ours to replace.
// Changes nothing. A directory that is empty or does not exist passes.
void CheckDirectory(const Experiment& experiment,
                    const Settings& settings,
                    const std::filesystem::path& directory);

// Makes a directory and those above it, where they are missing. Throws Error naming it.
void MakeDirectory(const std::filesystem::path& path);

// Removes a file, which may be missing. Throws Error naming it.
void Remove(const std::filesystem::path& path);

// Waits until every trial that the journals hold survives a loss of power: a killed process may have
// left some that do not. Throws Error naming the journal.
void SyncJournals(const std::filesystem::path& directory);

// Takes the lock of the process that changes a result directory as a whole: at the start of a run and
// at completion. Waits until other processes release it. Requires the journal folder.
DirectoryLock LockDirectory(const std::filesystem::path& directory);

// Creates `directory` and its journal folder. Throws Error when that fails.
void MakeResultDirectory(const std::filesystem::path& directory);

// Calls CheckDirectory, then writes settings.json if it does not exist.
void ClaimDirectory(const Experiment& experiment,
                    const Settings& settings,
                    const std::filesystem::path& directory);

// Adds the trials of every journal in `directory` to `finished`.
// Throws Error naming the journal when it is corrupt, when it belongs to another list of `trials`
// or to other tables, and when the rows of a trial differ from those already in `finished`. Rows of
// timed tables may differ; those already in `finished` stay. Returns the trials that were in
// `finished` already.
std::vector<size_t> AddFinishedTrials(const Experiment& experiment,
                                      const std::vector<Trial>& trials,
                                      const std::filesystem::path& directory,
                                      FinishedTrials& finished);

// Removes all trials but these (in increasing order) from `finished`.
void KeepOnly(const std::vector<size_t>& trials, FinishedTrials& finished);

// Returns the number of seeds that the results of manifest.json have, which --until-decided may have
// raised; 0 if it does not say. Throws Error naming the file if it is unreadable.
int SeedsOfResults(const std::filesystem::path& directory);

// Returns the outputs that manifest.json lists. Throws Error naming the file if it is unreadable.
std::vector<OutputFile> ListedOutputs(const std::filesystem::path& directory);

// Removes the outputs, manifest.json first: without it the directory does not look complete.
void RemoveOutputs(const Experiment& experiment, const std::filesystem::path& directory);

// Removes outputs that the manifest lists and that results written since do not have: files of tables and
// figures whose names are not among `outputs`.
void RemoveFormerOutputs(const std::vector<OutputFile>& listed,
                         const std::vector<std::string>& outputs,
                         const std::filesystem::path& directory);

// Removes every journal.
void RemoveJournals(const std::filesystem::path& directory);

// Aborts unless `rows` fit the measured tables of the experiment.
void CheckRows(const Experiment& experiment, const Trial& trial, const Rows& rows);

}  // namespace numsim::experiments
