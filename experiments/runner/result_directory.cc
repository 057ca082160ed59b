#include "experiments/runner/result_directory.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "experiments/runner/journal.h"
#include "numsim/base/error.h"
#include "numsim/io/durable.h"
#include "numsim/io/input_file.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

// Returns the journals of a directory, sorted by name.
std::vector<fs::path> Journals(const fs::path& directory) {
  std::vector<fs::path> journals;
  std::error_code status;
  fs::directory_iterator entry(directory / kJournalFolder, status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    if (entry->path().extension() == ".jsonl") journals.push_back(entry->path());
  }
  const bool is_absent =
      status == std::errc::no_such_file_or_directory || status == std::errc::not_a_directory;
  if (status && !is_absent) {
    throw Error::Format(
        "{}: cannot be read: {}", (directory / kJournalFolder).string(), status.message());
  }
  std::sort(journals.begin(), journals.end());
  return journals;
}

// Returns the reason why `rows` do not fit the measured tables, or nothing when they fit.
std::optional<std::string> Misfit(const Experiment& experiment, const Rows& rows) {
  for (const auto& [name, table_rows] : rows) {
    // Captured by name: clang 14 does not capture the names of a structured binding otherwise.
    const auto is_named = [&name = name](const TableSpec& table) {
      return table.name == name && !table.derived;
    };
    const auto table = std::find_if(experiment.tables.begin(), experiment.tables.end(), is_named);
    if (table == experiment.tables.end()) return fmt::format("no measured table \"{}\"", name);
    for (const Row& row : table_rows) {
      if (row.size() == table->columns.size()) continue;
      return fmt::format("table \"{}\" has {} columns and a row has {} cells",
                         name,
                         table->columns.size(),
                         row.size());
    }
  }
  return std::nullopt;
}

// Returns true if two measurements of one trial agree in every table that is not timed.
bool SameResults(const Experiment& experiment, const Rows& a, const Rows& b) {
  const auto rows_of = [](const Rows& rows, const std::string& table) {
    const auto found = rows.find(table);
    return found == rows.end() ? Rows::mapped_type() : found->second;
  };
  return std::all_of(
      experiment.tables.begin(), experiment.tables.end(), [&](const TableSpec& table) {
        return table.timed || rows_of(a, table.name) == rows_of(b, table.name);
      });
}

// Gives the label and the cells of a trial today's names of formats.
void ReplaceFormerNames(const Experiment& experiment, FinishedTrial& entry) {
  entry.label = FromFormerNames(&experiment, entry.label);
  for (auto& [name, rows] : entry.rows) {
    for (Row& row : rows) {
      for (Cell& cell : row) cell = FromFormerNames(&experiment, cell.Text());
    }
  }
}

// Returns true if results there have former names of formats.
bool HasFormerNames(const fs::path& directory) {
  return Exists(directory / kSettingsFile) && ReadSettings(directory / kSettingsFile).former_names;
}

// Throws Error when the entry does not belong to this list of trials and these tables.
void CheckEntry(const Experiment& experiment,
                const std::vector<Trial>& trials,
                const FinishedTrial& entry,
                const std::string& place) {
  std::string reason;
  if (entry.trial >= trials.size()) {
    reason = fmt::format("trial {} of {}", entry.trial, trials.size());
  } else if (entry.label != trials[entry.trial].label) {
    reason = fmt::format(
        "trial {} is \"{}\", expected \"{}\"", entry.trial, entry.label, trials[entry.trial].label);
  } else if (const auto misfit = Misfit(experiment, entry.rows)) {
    reason = *misfit;
  } else {
    return;
  }
  throw Error::Format(
      "{}: made by another version of {}: {}; use another --out", place, experiment.name, reason);
}

// Returns true for a file of the directory itself, whatever paths a manifest lists, but its settings.
bool IsOwnOutput(const OutputFile& output) {
  return fs::path(output.path).filename() == output.path && output.path != kSettingsFile;
}

// Returns the name of a file of a run other than its settings; "" if there is none.
std::string FirstFileOf(const Experiment& experiment, const fs::path& directory) {
  std::vector<std::string> names = {std::string(kManifestFile), std::string(kSummaryFile)};
  for (const TableSpec& table : experiment.tables) names.push_back(table.name + ".csv");
  for (const fs::path& journal : Journals(directory)) {
    names.push_back((fs::path(kJournalFolder) / journal.filename()).string());
  }
  const auto first = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return Exists(directory / name);
  });
  return first == names.end() ? "" : *first;
}

}  // namespace

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Throws Error if the directory is a shard of a sweep that an older numsim planned, and the words of
// its scripts mean other formats today.
void CheckSweep(const Experiment& experiment, const Settings& settings, const fs::path& directory) {
  const fs::path sweep = fs::absolute(directory).parent_path().parent_path() / "sweep";
  const fs::path path = sweep / kSettingsFile;
  if (directory.parent_path().filename() != "shards" || !Exists(path)) return;
  StoredSettings planned = ReadSettings(path);
  if (!planned.former_names || planned.experiment != experiment.name) return;
  AddNewOptions(experiment, planned.settings);
  const std::string difference =
      FirstDifference(planned, path.string(), {experiment.name, settings}, "this run");
  if (difference.empty()) return;
  throw Error::Format(
      "{}: belongs to a sweep of an older numsim, in whose scripts names of formats have another "
      "meaning: {}; plan the sweep again",
      directory.string(),
      difference);
}

void CheckDirectory(const Experiment& experiment,
                    const Settings& settings,
                    const fs::path& directory) {
  const StoredSettings ours = {experiment.name, settings};
  const fs::path path = directory / kSettingsFile;
  CheckSweep(experiment, settings, directory);
  // Look before reading the settings: another shard that starts now writes them first, so a file
  // that was found without them is not from such a shard.
  const std::string found = FirstFileOf(experiment, directory);
  if (Exists(path)) {
    StoredSettings stored = ReadSettings(path);
    AddNewOptions(experiment, stored.settings);
    const std::string difference = FirstDifference(stored, path.string(), ours, "this run");
    if (difference.empty()) return;
    throw Error::Format("{}: holds results of other settings: {}; use another --out",
                        directory.string(),
                        difference);
  }
  if (found.empty()) return;
  throw Error::Format("{}: holds {} but no {} that describes its run; use another --out",
                      directory.string(),
                      found,
                      kSettingsFile);
}

void MakeDirectory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error::Format("{}: cannot be created: {}", path.string(), error.message());
}

void Remove(const fs::path& path) {
  const std::error_code status = RemoveFile(path);
  if (status) throw Error::Format("{}: cannot be removed: {}", path.string(), status.message());
}

void SyncJournals(const fs::path& directory) {
  for (const fs::path& journal : Journals(directory)) {
    if (const std::error_code status = SyncPath(journal)) {
      throw Error::Format("{}: cannot be written: {}", journal.string(), status.message());
    }
  }
}

DirectoryLock LockDirectory(const fs::path& directory) {
  return DirectoryLock(directory / kJournalFolder / kLockFile, DirectoryLock::IfHeld::kWait);
}

void MakeResultDirectory(const fs::path& directory) {
  const fs::path journals = directory / kJournalFolder;
  if (const std::error_code status = MakeDirectories(journals)) {
    throw Error::Format(
        "--out {}: cannot create {}: {}", directory.string(), journals.string(), status.message());
  }
}

void ClaimDirectory(const Experiment& experiment,
                    const Settings& settings,
                    const fs::path& directory) {
  CheckDirectory(experiment, settings, directory);
  const fs::path path = directory / kSettingsFile;
  if (!Exists(path)) WriteSettings(path, {experiment.name, settings});
}

std::vector<size_t> AddFinishedTrials(const Experiment& experiment,
                                      const std::vector<Trial>& trials,
                                      const fs::path& directory,
                                      FinishedTrials& finished) {
  std::vector<size_t> repeated;
  const bool former_names = HasFormerNames(directory);
  for (const fs::path& journal : Journals(directory)) {
    size_t line = 0;
    for (FinishedTrial& entry : ReadJournal(journal)) {
      ++line;
      if (former_names) ReplaceFormerNames(experiment, entry);
      CheckEntry(experiment, trials, entry, fmt::format("{}:{}", journal.string(), line));
      const auto [known, added] = finished.try_emplace(entry.trial);
      if (added) {
        known->second = {std::move(entry.rows),
                         std::move(entry.commit),
                         std::move(entry.build),
                         std::move(entry.processor),
                         entry.seconds,
                         journal,
                         std::move(entry.claims)};
      } else if (!SameResults(experiment, known->second.rows, entry.rows)) {
        throw Error::Format("{}:{}: the rows of trial \"{}\" differ from those in {}",
                            journal.string(),
                            line,
                            entry.label,
                            known->second.journal.string());
      } else {
        repeated.push_back(entry.trial);
      }
    }
  }
  return repeated;
}

void KeepOnly(const std::vector<size_t>& trials, FinishedTrials& finished) {
  std::erase_if(finished, [&](const auto& entry) {
    return !std::binary_search(trials.begin(), trials.end(), entry.first);
  });
}

int SeedsOfResults(const fs::path& directory) {
  ListedOutputs(directory);  // throws if it is not a manifest
  const auto manifest = nlohmann::json::parse(ReadText(directory / kManifestFile));
  return manifest.contains("seeds") ? static_cast<int>(manifest["seeds"].size()) : 0;
}

std::vector<OutputFile> ListedOutputs(const fs::path& directory) {
  return ReadOutputs(directory / kManifestFile);
}

void RemoveOutputs(const Experiment& experiment, const fs::path& directory) {
  std::vector<std::string> names = {std::string(kSummaryFile), std::string(kVerdictsFile)};
  for (const TableSpec& table : experiment.tables) names.push_back(table.name + ".csv");
  if (Exists(directory / kManifestFile)) {
    for (const OutputFile& output : ListedOutputs(directory)) {
      if (IsOwnOutput(output)) names.push_back(output.path);
    }
  }
  Remove(directory / kManifestFile);
  for (const std::string& name : names) Remove(directory / name);
}

void RemoveFormerOutputs(const std::vector<OutputFile>& listed,
                         const std::vector<std::string>& outputs,
                         const fs::path& directory) {
  for (const OutputFile& output : listed) {
    const auto same = [&](const std::string& name) {
      return fs::path(name).stem() == fs::path(output.path).stem();
    };
    if (IsOwnOutput(output) && std::none_of(outputs.begin(), outputs.end(), same)) {
      Remove(directory / output.path);
    }
  }
}

void RemoveJournals(const fs::path& directory) {
  for (const fs::path& journal : Journals(directory)) Remove(journal);
}

void CheckRows(const Experiment& experiment, const Trial& trial, const Rows& rows) {
  const auto misfit = Misfit(experiment, rows);
  NUMSIM_CHECK(!misfit, "{}, trial \"{}\": {}", experiment.name, trial.label, *misfit);
}

}  // namespace numsim::experiments
