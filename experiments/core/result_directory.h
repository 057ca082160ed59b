// What a result directory holds: settings, journals, outputs. The rules of runner.h about whose
// results may be continued, replaced or combined are here.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "experiments/core/settings.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {

inline constexpr std::string_view kSettingsFile = "settings.json";
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kSummaryFile = "summary.txt";
inline constexpr std::string_view kJournalFolder = "journal";

// Rows of one finished point and where they come from.
struct FinishedRows {
  Rows rows;
  std::string commit;
  std::filesystem::path journal;
};

// By index of the point.
using FinishedTrials = std::map<size_t, FinishedRows>;

// Throws Error when `directory` holds results of other settings, naming the first difference, or
// holds a file of an output's name without settings.json: that is not ours to replace. Changes
// nothing; a directory that is empty or not there is fine.
void CheckDirectory(const Experiment& experiment,
                    const Settings& settings,
                    const std::filesystem::path& directory);

// Makes `directory` and its journal folder. Throws Error when that fails.
void MakeResultDirectory(const std::filesystem::path& directory);

// CheckDirectory, then writes settings.json where there is none.
void ClaimDirectory(const Experiment& experiment,
                    const Settings& settings,
                    const std::filesystem::path& directory);

// Adds the points of every journal in `directory` to `finished`.
// Throws Error naming the journal when it is corrupt, when it belongs to another list of `points`
// or other tables, and when a point's rows differ from those already there. Of timed tables those
// already there stay.
void AddFinishedTrials(const Experiment& experiment,
                       const std::vector<Trial>& trials,
                       const std::filesystem::path& directory,
                       FinishedTrials& finished);

// The outputs that manifest.json lists. Throws Error naming the file when it cannot be read.
std::vector<OutputFile> ListedOutputs(const std::filesystem::path& directory);

// Removes the outputs, manifest.json first: without it nothing looks complete.
void RemoveOutputs(const Experiment& experiment, const std::filesystem::path& directory);

// Removes every journal.
void RemoveJournals(const std::filesystem::path& directory);

// Aborts unless `rows` fits the measured tables of the experiment.
void CheckRows(const Experiment& experiment, const Trial& trial, const Rows& rows);

}  // namespace numsim::experiments
