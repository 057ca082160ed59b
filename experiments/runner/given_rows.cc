#include "experiments/runner/given_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "experiments/runner/completion.h"
#include "experiments/runner/given_trainings.h"
#include "experiments/runner/rows_table.h"
#include "numsim/base/build_info.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// Adds the rows of another table to the trials of their trainings.
void AddTable(const Experiment& experiment,
              const std::vector<WantedTraining>& trainings,
              const std::map<size_t, Row>& given,
              const RowsTable& file,
              const TableSpec& spec,
              FinishedTrials& finished) {
  const Names columns = NamesOf(spec.columns);
  std::vector<size_t> among;
  among.reserve(given.size());
  for (const auto& [training, row] : given) among.push_back(training);
  TrainingFinder finder(experiment, trainings, among, spec.columns);
  for (size_t row = 0; row < file.Size(); ++row) {
    const size_t training = finder.Find(file, row);
    Row cells;
    for (const std::string& column : columns) {
      const std::optional<size_t> place = PlaceInKey(experiment, column);
      if (!place && !Has(experiment.rows.texts, column)) file.Number(row, column);
      cells.push_back(place ? trainings[training].training.key[*place]
                            : Cell(file.Text(row, column)));
    }
    finished.at(trainings[training].trial).rows[spec.name].push_back(std::move(cells));
  }
}

std::string FileName(const fs::path& path) { return path.filename().string(); }

}  // namespace

std::string WantedTraining::Text(const Experiment& experiment) const {
  std::string text;
  for (size_t k = 0; k < training.key.size(); ++k) {
    text += fmt::format(
        "{}{}={}", text.empty() ? "" : " ", experiment.rows.key[k], training.key[k].Text());
  }
  return text;
}

std::vector<WantedTraining> ListTrainings(const Experiment& experiment, const Settings& settings) {
  if (experiment.rows.table.empty()) {
    Names measured;
    for (const TableSpec& table : experiment.tables) {
      if (!table.derived) measured.push_back(table.name);
    }
    throw Error::Format(
        "{} does not take --rows: its claims need what only its own trials measure (tables {})",
        experiment.name,
        fmt::join(measured, ", "));
  }
  std::vector<WantedTraining> wanted;
  const std::vector<Trial> trials = ListTrials(experiment, settings);
  for (size_t i = 0; i < trials.size(); ++i) {
    for (TrainingOfRow& training : experiment.rows.trainings(settings, trials[i])) {
      wanted.push_back({i, std::move(training)});
    }
  }
  return wanted;
}

std::vector<std::string> ColumnsOfRows(const Experiment& experiment) {
  Names columns = NamesOf(MeasuredTable(experiment, experiment.rows.table).columns);
  if (!Has(columns, kParametersColumn)) columns.emplace_back(kParametersColumn);
  for (const std::string_view column : {kTokensColumn, kRunColumn, kDigestColumn}) {
    NUMSIM_CHECK(!Has(columns, column), "{}: {}", experiment.name, column);
    columns.emplace_back(column);
  }
  return columns;
}

std::string_view UnitOfTokens(const TrainConfig& config) {
  return TraitsOf(config.model.kind).has_tokens ? "tokens" : "examples";
}

double TokensPerStep(const TrainConfig& config) {
  const auto batch = static_cast<double>(config.train.batch);
  return TraitsOf(config.model.kind).has_tokens ? batch * static_cast<double>(config.model.context)
                                                : batch;
}

RowsArgument ParseRowsArgument(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || text.find('/') < equals) return {.table = "", .path = text};
  return {.table = text.substr(0, equals), .path = text.substr(equals + 1)};
}

FinishedTrials ReadRows(const Experiment& experiment,
                        const std::vector<RowsArgument>& files,
                        Settings& settings) {
  const std::vector<WantedTraining> trainings = ListTrainings(experiment, settings);
  const std::string& main = experiment.rows.table;
  std::map<std::string, fs::path> path_of;
  for (const RowsArgument& file : files) {
    const TableSpec& spec = MeasuredTable(experiment, file.table.empty() ? main : file.table);
    if (path_of.emplace(spec.name, file.path).second) continue;
    throw Error::Format("--rows {}: table {} has a file already: {}",
                        file.path.string(),
                        spec.name,
                        path_of[spec.name].string());
  }
  if (!path_of.contains(main)) {
    throw Error::Format("--rows: expected a file of the table {} too", main);
  }
  const GivenTrainings rows(experiment, trainings, path_of[main]);
  FinishedTrials finished;
  for (const auto& [training, row] : rows.Rows()) {
    FinishedRows& trial = finished[trainings[training].trial];
    trial.commit = BuildCommit();
    trial.rows[main].push_back(row);
  }
  settings.rows = {.files = {{main, FileName(rows.File().Path()), rows.File().Sha256()}},
                   .scale = rows.Scale(),
                   .note = rows.Note()};
  for (const auto& [table, path] : path_of) {
    if (table == main) continue;
    const TableSpec& spec = MeasuredTable(experiment, table);
    const RowsTable file(path, NamesOf(spec.columns));
    AddTable(experiment, trainings, rows.Rows(), file, spec, finished);
    settings.rows.files.push_back({table, FileName(path), file.Sha256()});
  }
  return finished;
}

}  // namespace numsim::experiments
