#include "experiments/core/rows_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "experiments/core/given_rows.h"
#include "experiments/core/training_run.h"
#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

using Cells = std::map<std::string, std::string>;  // by column

// Returns the number of the training that a run directory is of. Throws Error if it is of none, or of
// several.
size_t TrainingOfRun(const Experiment& experiment,
                     const std::vector<WantedTraining>& trainings,
                     const TrainingRun& run,
                     const fs::path& directory) {
  std::vector<size_t> same;
  std::optional<std::string> nearest;  // of the training with the fewest differences
  size_t fewest = 0;
  for (size_t i = 0; i < trainings.size(); ++i) {
    const std::vector<std::string> differences =
        CompareConfigs(run.config, trainings[i].training.config).others;
    if (differences.empty()) same.push_back(i);
    if (nearest && differences.size() >= fewest) continue;
    fewest = differences.size();
    nearest = fmt::format("{}: {}", trainings[i].Text(experiment), fmt::join(differences, "; "));
  }
  if (same.empty()) {
    throw Error::Format(
        "--collect {}: is none of the {} trainings of these settings; the nearest is {}",
        directory.string(),
        trainings.size(),
        nearest.value_or(""));
  }
  if (same.size() > 1) {
    throw Error::Format(
        "--collect {}: may be each of {} trainings that differ in nothing that a configuration says, as "
        "{} and {}; fill its row by hand",
        directory.string(),
        same.size(),
        trainings[same[0]].Text(experiment),
        trainings[same[1]].Text(experiment));
  }
  return same.front();
}

// Returns what the run directories say about the trainings, by number of the training.
std::map<size_t, Cells> Collect(const Experiment& experiment,
                                const std::vector<WantedTraining>& trainings,
                                const RowsTemplate& request) {
  std::map<size_t, Cells> found;
  const fs::path folder = fs::absolute(request.file).parent_path();
  for (const fs::path& directory : request.collect) {
    const std::string digest = RunDigest(directory);
    const TrainingRun run = ReadTrainingRun(directory);
    const size_t training = TrainingOfRun(experiment, trainings, run, directory);
    const std::string path =
        fs::absolute(directory).lexically_normal().lexically_relative(folder.lexically_normal());
    const auto [known, added] = found.emplace(training, run.outcomes);
    Cells& cells = known->second;
    if (!added) {
      throw Error::Format("--collect {}: is the training of {} too: {}",
                          directory.string(),
                          cells.at(std::string(kRunColumn)),
                          trainings[training].Text(experiment));
    }
    cells[std::string(kRunColumn)] = path;
    cells[std::string(kDigestColumn)] = digest;
    const double tokens =
        Cell(cells.at("steps")).Number() * TokensPerStep(trainings[training].training.config);
    cells[std::string(kTokensColumn)] = fmt::format("{:.0f}", tokens);
  }
  return found;
}

Cells Planned(const Experiment& experiment, const TrainingOfRow& training) {
  Cells cells;
  for (size_t k = 0; k < training.key.size(); ++k) {
    cells[experiment.rows.key[k]] = training.key[k].Text();
  }
  cells[std::string(kTokensColumn)] = fmt::format(
      "{:.0f}", static_cast<double>(training.config.train.steps) * TokensPerStep(training.config));
  return cells;
}

// Writes the configurations of the trainings, with validations at the start and at the end and
// without the telemetry of tensors, which no row has and not every program writes.
void WriteConfigs(const Experiment& experiment,
                  const std::vector<WantedTraining>& trainings,
                  const fs::path& folder) {
  const size_t digits = fmt::format("{}", trainings.size() - 1).size();
  std::map<fs::path, std::string> texts;
  for (size_t i = 0; i < trainings.size(); ++i) {
    TrainConfig config = trainings[i].training.config;
    config.train.valid_every = config.train.steps;
    config.telemetry.tensors_every = 0;
    const fs::path path = folder / fmt::format("{:0{}}.toml", i, digits);
    texts[path] = fmt::format(
        "# {}, {}\n{}", experiment.name, trainings[i].Text(experiment), WriteTrainConfig(config));
    if (Exists(path) && ReadText(path) != texts[path]) {
      throw Error::Format("--configs {}: exists, with another content", path.string());
    }
  }
  MakeDirectory(folder);
  for (const auto& [path, text] : texts) WriteFileAtomically(path, text);
}

}  // namespace

RowsTemplateReport WriteRowsTemplate(const Experiment& experiment,
                                     const Settings& settings,
                                     const RowsTemplate& request) {
  if (Exists(request.file)) {
    throw Error::Format("--rows-template {}: exists; remove it or write another file",
                        request.file.string());
  }
  const std::vector<WantedTraining> trainings = ListTrainings(experiment, settings);
  const std::map<size_t, Cells> found = Collect(experiment, trainings, request);
  RowsTemplateReport report{
      .trainings = trainings.size(), .filled = found.size(), .empty_columns = {}};
  Table table{.columns = ColumnsOfRows(experiment), .rows = {}};
  std::set<std::string> empty;
  for (size_t i = 0; i < trainings.size(); ++i) {
    Cells cells = Planned(experiment, trainings[i].training);
    const auto run = found.find(i);
    if (run != found.end()) {
      for (const auto& [column, text] : run->second) cells[column] = text;
    }
    Row& row = table.rows.emplace_back();
    for (const std::string& column : table.columns) {
      row.emplace_back(cells[column]);
      if (run != found.end() && cells[column].empty()) empty.insert(column);
    }
  }
  report.empty_columns.assign(empty.begin(), empty.end());
  if (!request.configs.empty()) WriteConfigs(experiment, trainings, request.configs);
  WriteCsv(request.file, table);
  return report;
}

}  // namespace numsim::experiments
