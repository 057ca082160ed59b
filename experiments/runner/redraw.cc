#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "experiments/runner/completion.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
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

// Reads a table. Throws Error unless it has the columns of today.
Table ReadColumnsOf(const TableSpec& spec, const fs::path& path) {
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

// Reads the CSV file of one table. Throws Error unless the file is as the run wrote it.
Table ReadTable(const TableSpec& spec,
                const std::vector<OutputFile>& listed,
                const fs::path& directory) {
  const std::string name = spec.name + ".csv";
  const fs::path path = directory / name;
  const auto is_named = [&](const OutputFile& output) { return output.path == name; };
  if (!Exists(path) && std::any_of(listed.begin(), listed.end(), is_named)) {
    throw Error::Format("table {} is missing in {}", name, directory.string());
  }
  if (!CheckOutput(directory, listed, name)) {
    throw Error::Format("{}: does not list {}; was it made by another version of numsim?",
                        (directory / kManifestFile).string(),
                        name);
  }
  return ReadColumnsOf(spec, path);
}

// Returns true for an experiment that may have been corrected since the results were written.
bool IsFile(const Experiment& experiment) { return !experiment.file.sha256.empty(); }

// Gives the cells of a table of an older numsim today's names of formats.
void ReplaceFormerNames(const Experiment& experiment, Table& table) {
  for (Row& row : table.rows) {
    for (Cell& cell : row) cell = FromFormerNames(&experiment, cell.Text());
  }
}

// Throws Error naming the file if the settings are not those of the run. Older versions list no settings
// among the outputs; then the options of the manifest are compared.
void CheckSettings(const StoredSettings& stored,
                   const std::vector<OutputFile>& listed,
                   const fs::path& directory) {
  if (CheckOutput(directory, listed, kSettingsFile)) return;
  const auto manifest = nlohmann::json::parse(ReadText(directory / kManifestFile));
  StoredSettings of_run = stored;
  try {
    of_run.experiment = manifest.at("experiment");
    of_run.settings.options = manifest.at("options");
    auto& options = of_run.settings.options;
    options.erase("seeds");  // which --until-decided may have raised
    of_run.settings.preset = options.at("preset");
    options.erase("preset");
    of_run.settings.seed = std::stoull(options.at("seed"));
    options.erase("seed");
    if (stored.former_names) {
      const Experiment* const experiment = FindExperiment(of_run.experiment);
      for (auto& [name, value] : options) value = FromFormerNames(experiment, value);
    }
  } catch (const std::exception&) {
    throw Error::Format(
        "{}: expected the manifest of a numsim run, found no experiment and options",
        (directory / kManifestFile).string());
  }
  const std::string difference =
      FirstDifference(stored, (directory / kSettingsFile).string(), of_run, "manifest.json");
  if (difference.empty()) return;
  throw Error::Format(
      "{}: one of these files has been changed: {}", directory.string(), difference);
}

// Returns the manifest's text of kClaimsPolicy; "" if it has none.
std::string MeasuredClaims(const fs::path& directory) {
  const auto manifest = nlohmann::json::parse(ReadText(directory / kManifestFile));
  const nlohmann::json claims =
      manifest.value(nlohmann::json::json_pointer("/policies") / kClaimsPolicy, nlohmann::json());
  return claims.is_string() ? claims.get<std::string>() : "";
}

// Replaces the manifest's list of outputs and, of an experiment that is a file, what that says; the rest
// still describes the run of the CSV files.
void UpdateManifest(const Experiment& experiment,
                    const fs::path& directory,
                    std::vector<std::string> outputs) {
  outputs.emplace_back(kSettingsFile);
  const fs::path path = directory / kManifestFile;
  auto manifest = nlohmann::ordered_json::parse(ReadText(path));  // ListedOutputs has read it.
  auto list = nlohmann::ordered_json::array();
  for (const std::string& name : outputs) {
    const OutputFile output = DescribeOutput(directory, name);
    list.push_back({{"path", output.path}, {"bytes", output.bytes}, {"sha256", output.sha256}});
  }
  manifest["outputs"] = list;
  if (IsFile(experiment)) {
    manifest["policies"][kFilePolicy] = experiment.file.sha256;
    manifest["claims"] = nlohmann::ordered_json::object();
    for (const auto& [id, text] : ClaimTexts(experiment)) manifest["claims"][id] = text;
  }
  WriteFileAtomically(path, manifest.dump(2) + "\n");
}

// Reads the tables and adds their files to report.outputs. Derived tables of an experiment that is a file
// are computed again, as it says today.
Tables ReadTables(const Experiment& experiment,
                  const StoredSettings& stored,
                  const std::vector<OutputFile>& listed,
                  const fs::path& directory,
                  RunReport& report) {
  Tables tables;
  const bool derives = IsFile(experiment);
  for (const TableSpec& spec : experiment.tables) {
    if (derives) tables[spec.name].columns = ColumnNames(spec);
    if (derives && spec.derived) continue;
    // --rows may not have given it.
    const bool is_listed = std::any_of(listed.begin(), listed.end(), [&](const OutputFile& output) {
      return output.path == spec.name + ".csv";
    });
    if (!stored.settings.rows.files.empty() && !is_listed) continue;
    tables[spec.name] = ReadTable(spec, listed, directory);
    if (stored.former_names) ReplaceFormerNames(experiment, tables[spec.name]);
    report.outputs.push_back(spec.name + ".csv");
  }
  if (derives) experiment.derive(stored.settings, tables);
  AddNotGiven(experiment, stored.settings, tables);
  return tables;
}

void WriteDerived(const Experiment& experiment,
                  const Tables& tables,
                  const fs::path& directory,
                  RunReport& report) {
  for (const TableSpec& spec : experiment.tables) {
    if (!spec.derived || tables.not_given.contains(spec.name)) continue;
    report.outputs.push_back(spec.name + ".csv");
    WriteCsv(directory / report.outputs.back(), tables.at(spec.name));
  }
}

// Returns true for a folder of experiments/published: settings and some of the tables, without a manifest.
bool IsPublished(const Experiment& experiment, const fs::path& directory) {
  if (!Exists(directory / kSettingsFile) || Exists(directory / kManifestFile)) return false;
  return std::any_of(
      experiment.tables.begin(), experiment.tables.end(), [&](const TableSpec& spec) {
        return HasCsv(directory / (spec.name + ".csv"));
      });
}

// Draws the figures of published results. Tables that are not published count as not given: figures of them
// have no data and are left out.
RunReport DrawPublished(const Experiment& experiment,
                        const fs::path& directory,
                        const Drawing& drawing) {
  StoredSettings stored = ReadSettingsOf(experiment, directory / kSettingsFile);
  Tables tables;
  for (const TableSpec& spec : experiment.tables) {
    tables[spec.name].columns = ColumnNames(spec);
    const fs::path path = directory / (spec.name + ".csv");
    if (HasCsv(path)) {
      tables[spec.name] = ReadColumnsOf(spec, path);
      if (stored.former_names) ReplaceFormerNames(experiment, tables[spec.name]);
    } else {
      tables.not_given.insert(spec.name);
    }
  }
  RunReport report;
  MakeDirectory(drawing.out);
  WriteFigures(experiment, stored.settings, tables, drawing, drawing.out, report);
  return report;
}

}  // namespace

RunReport Redraw(const Experiment& experiment, const fs::path& directory, const Drawing& drawing) {
  if (!drawing.out.empty() && IsPublished(experiment, directory)) {
    return DrawPublished(experiment, directory, drawing);
  }
  RequireComplete(directory);
  StoredSettings stored = ReadSettingsOf(experiment, directory / kSettingsFile);
  // Results may be archived without their journals; then no run can be using the directory.
  std::optional<DirectoryLock> lock;
  if (drawing.out.empty() && Exists(directory / kJournalFolder)) {
    lock.emplace(directory / kJournalFolder / kLockFile, DirectoryLock::IfHeld::kWait);
  }

  RunReport report;
  const std::vector<OutputFile> listed = ListedOutputs(directory);
  CheckSettings(ReadSettings(directory / kSettingsFile), listed, directory);
  stored.settings.seeds = std::max(stored.settings.seeds, SeedsOfResults(directory));
  if (IsFile(experiment)) experiment.file.check_rows(stored.settings);
  const Tables tables = ReadTables(experiment, stored, listed, directory, report);
  if (!drawing.out.empty()) {
    report.outputs.clear();
    MakeDirectory(drawing.out);
    WriteFigures(experiment, stored.settings, tables, drawing, drawing.out, report);
    return report;
  }
  if (IsFile(experiment)) WriteDerived(experiment, tables, directory, report);
  WriteFigures(experiment, stored.settings, tables, drawing, directory, report);
  WriteSummary(experiment, stored.settings, tables, MeasuredClaims(directory), directory, report);
  if (IsFile(experiment)) RemoveFormerOutputs(listed, report.outputs, directory);
  UpdateManifest(experiment, directory, report.outputs);
  report.outputs.emplace_back(kManifestFile);
  return report;
}

RunReport Redraw(const fs::path& directory, const Drawing& drawing) {
  if (drawing.out.empty() || !Exists(directory / kSettingsFile)) RequireComplete(directory);
  const std::string name = ReadSettings(directory / kSettingsFile).experiment;
  const Experiment* experiment = FindExperiment(name);
  if (experiment == nullptr) {
    throw Error::Format(
        "{}: holds results of \"{}\", which this numsim does not have", directory.string(), name);
  }
  return Redraw(*experiment, directory, drawing);
}

}  // namespace numsim::experiments
