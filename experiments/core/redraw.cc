#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "experiments/core/completion.h"
#include "experiments/core/journal.h"
#include "experiments/core/result_directory.h"
#include "experiments/core/runner.h"
#include "experiments/core/settings.h"
#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

void RequireComplete(const fs::path& directory) {
  for (const std::string_view name : {kSettingsFile, kManifestFile}) {
    if (Exists(directory / name)) continue;
    throw Error::Format(
        "{}: expected the finished results of numsim run, found no {}", directory.string(), name);
  }
}

// Reads the CSV file of one table. Throws Error unless the file is as the run wrote it.
Table ReadTable(const TableSpec& spec,
                const std::vector<OutputFile>& listed,
                const fs::path& directory) {
  const std::string name = spec.name + ".csv";
  const fs::path path = directory / name;
  const auto is_named = [&](const OutputFile& output) { return output.path == name; };
  const auto entry = std::find_if(listed.begin(), listed.end(), is_named);
  if (entry == listed.end()) {
    throw Error::Format("{}: does not list {}; was it made by another version of numsim?",
                        (directory / kManifestFile).string(),
                        name);
  }
  if (!Exists(path)) throw Error::Format("table {} is missing in {}", name, directory.string());
  if (DescribeOutput(directory, name).sha256 != entry->sha256) {
    throw Error::Format("{}: changed since the run that wrote it: its SHA-256 is not the one in {}",
                        path.string(),
                        kManifestFile);
  }
  Table table = ReadCsv(path);
  const auto same = [](const std::string& found, const Column& column) {
    return found == column.name;
  };
  if (!std::equal(table.columns.begin(),
                  table.columns.end(),
                  spec.columns.begin(),
                  spec.columns.end(),
                  same)) {
    throw Error::Format("{}: has the columns of another version of numsim", path.string());
  }
  return table;
}

// Replaces the manifest's list of outputs; the rest still describes the run of the CSV files.
void UpdateManifest(const fs::path& directory, const std::vector<std::string>& outputs) {
  const fs::path path = directory / kManifestFile;
  auto manifest = nlohmann::ordered_json::parse(ReadText(path));  // ListedOutputs has read it.
  auto list = nlohmann::ordered_json::array();
  for (const std::string& name : outputs) {
    const OutputFile output = DescribeOutput(directory, name);
    list.push_back({{"path", output.path}, {"bytes", output.bytes}, {"sha256", output.sha256}});
  }
  manifest["outputs"] = list;
  WriteFileAtomically(path, manifest.dump(2) + "\n");
}

}  // namespace

RunReport Redraw(const Experiment& experiment, const fs::path& directory) {
  RequireComplete(directory);
  StoredSettings stored = ReadSettingsOf(experiment, directory / kSettingsFile);
  // Results may be archived without their journals; then no run can be using the directory.
  std::optional<DirectoryLock> lock;
  if (Exists(directory / kJournalFolder)) {
    lock.emplace(directory / kJournalFolder / kLockFile, DirectoryLock::IfHeld::kWait);
  }

  RunReport report;
  Tables tables;
  const std::vector<OutputFile> listed = ListedOutputs(directory);
  stored.settings.seeds = std::max(stored.settings.seeds, SeedsOfResults(directory));
  for (const TableSpec& spec : experiment.tables) {
    tables[spec.name] = ReadTable(spec, listed, directory);
    report.outputs.push_back(spec.name + ".csv");
  }
  WriteFiguresAndSummary(experiment, stored.settings, tables, directory, report);
  UpdateManifest(directory, report.outputs);
  report.outputs.emplace_back(kManifestFile);
  return report;
}

RunReport Redraw(const fs::path& directory) {
  RequireComplete(directory);
  const std::string name = ReadSettings(directory / kSettingsFile).experiment;
  const Experiment* experiment = FindExperiment(name);
  if (experiment == nullptr) {
    throw Error::Format(
        "{}: holds results of \"{}\", which this numsim does not have", directory.string(), name);
  }
  return Redraw(*experiment, directory);
}

}  // namespace numsim::experiments
