#include "experiments/runner/rows_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "experiments/runner/given_rows.h"
#include "experiments/runner/training_run.h"
#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

using Cells = std::map<std::string, std::string>;  // by column

constexpr std::string_view kCurves = "curves", kValidations = "validations";

// A table of losses beside that of the trainings, of which run directories have the rows.
struct Losses {
  std::vector<std::string> columns;       // after those of the key
  std::map<size_t, std::vector<Row>> of;  // rows by number of the training
};

// The trainings as the run directories have them.
struct Collected {
  std::map<size_t, Cells> cells;  // of the table of trainings, by number of the training
  std::map<std::string_view, Losses> losses;  // by the name of the table
};

// Returns the steps between two points of the experiment's curves of training losses; 0 if it has no
// such table.
uint64_t StepsPerPoint(const Experiment& experiment, const Settings& settings) {
  if (!settings.options.contains("records")) return 0;
  std::vector<std::string> wanted = experiment.rows.key;
  wanted.insert(wanted.end(), {"step", "loss"});
  const bool has = std::ranges::any_of(experiment.tables, [&](const TableSpec& table) {
    return table.name == kCurves && std::ranges::equal(table.columns, wanted, {}, &Column::name);
  });
  if (!has) return 0;
  const int64_t steps = settings.GetInteger("steps", 1, std::numeric_limits<int64_t>::max());
  return static_cast<uint64_t>(
      std::max<int64_t>(1, steps / settings.GetInteger("records", 1, steps)));
}

fs::path BesideFile(const fs::path& file, std::string_view table) {
  fs::path name = file.stem();
  name += fmt::format("-{}", table);
  name += file.extension();
  return file.parent_path() / name;
}

// Appends the curve of a training as its experiment draws it: the loss at the start, then means over
// `every` steps.
void AddCurve(const Row& key,
              const TrainingRun& run,
              const std::map<uint64_t, double>& losses,
              uint64_t every,
              std::vector<Row>& rows) {
  const auto add = [&](uint64_t step, const Cell& loss) {
    Row& row = rows.emplace_back(key);
    row.emplace_back(step);
    row.push_back(loss);
  };
  if (const auto start = run.outcomes.find("start_loss"); start != run.outcomes.end()) {
    add(0, start->second);
  }
  const bool finished = run.outcomes.at("status") == "finished";
  for (auto at = losses.begin(); at != losses.end();) {
    const uint64_t end = (at->first + every - 1) / every * every;
    double sum = 0;
    uint64_t count = 0, step = 0;
    for (; at != losses.end() && at->first <= end; ++at, ++count) {
      sum += at->second;
      step = at->first;
    }
    const bool complete = step == end || at != losses.end();
    if (complete || finished) add(complete ? end : step, sum / static_cast<double>(count));
  }
}

// Appends the validations of a training.
void AddValidations(const TrainingOfRow& training,
                    const DoublingLosses& found,
                    std::vector<Row>& rows) {
  for (const auto& [step, loss] : found.losses) {
    Row& row = rows.emplace_back(training.key);
    row.emplace_back(step);
    row.emplace_back(
        fmt::format("{:.0f}", static_cast<double>(step) * TokensPerStep(training.config)));
    row.emplace_back(loss);
  }
}

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

Collected Collect(const Experiment& experiment,
                  const Settings& settings,
                  const std::vector<WantedTraining>& trainings,
                  const RowsTemplate& request) {
  Collected found;
  const uint64_t every = StepsPerPoint(experiment, settings);
  const fs::path folder = fs::absolute(request.file).parent_path();
  for (const fs::path& directory : request.collect) {
    const std::string digest = RunDigest(directory);
    TrainingRun run = ReadTrainingRun(directory);
    const size_t training = TrainingOfRun(experiment, trainings, run, directory);
    const TrainingOfRow& wanted = trainings[training].training;
    const DoublingLosses doublings = AddDoublings(directory, wanted, run);
    const std::string path =
        fs::absolute(directory).lexically_normal().lexically_relative(folder.lexically_normal());
    const auto [known, added] = found.cells.emplace(training, run.outcomes);
    Cells& cells = known->second;
    if (!added) {
      throw Error::Format("--collect {}: is the training of {} too: {}",
                          directory.string(),
                          cells.at(std::string(kRunColumn)),
                          trainings[training].Text(experiment));
    }
    cells[std::string(kRunColumn)] = path;
    cells[std::string(kDigestColumn)] = digest;
    const double tokens = Cell(cells.at("steps")).Number() * TokensPerStep(wanted.config);
    cells[std::string(kTokensColumn)] = fmt::format("{:.0f}", tokens);
    if (every > 0) {
      Losses& curves = found.losses[kCurves];
      curves.columns = {"step", "loss"};
      AddCurve(wanted.key, run, ReadLosses(directory), every, curves.of[training]);
    }
    if (wanted.validations > 0) {
      Losses& validations = found.losses[kValidations];
      validations.columns = {"step", "tokens", "valid_loss"};
      AddValidations(wanted, doublings, validations.of[training]);
    }
  }
  return found;
}

// Writes the rows of a table of losses, in the order of the trainings.
void WriteLosses(const Experiment& experiment, const Losses& losses, const fs::path& file) {
  Table table{.columns = experiment.rows.key, .rows = {}};
  table.columns.insert(table.columns.end(), losses.columns.begin(), losses.columns.end());
  for (const auto& [training, rows] : losses.of) {
    table.rows.insert(table.rows.end(), rows.begin(), rows.end());
  }
  WriteCsv(file, table);
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

// Returns the steps between validations that give all those of a training.
uint64_t StepsPerValidation(const TrainingOfRow& training) {
  const uint64_t steps = training.config.train.steps;
  if (training.validations <= 1) return steps;
  const uint64_t first = steps >> (training.validations - 1);
  if (first > 0 && first << (training.validations - 1) == steps) return first;
  throw Error::Format(
      "--configs: {} validations at doublings need steps that are a multiple of {}, found {}",
      training.validations,
      uint64_t{1} << (training.validations - 1),
      steps);
}

// Writes the configurations of the trainings, with the validations that the rows have, the loss of
// every step, from which curves are made, and without the telemetry of tensors, which no row has and not
// every program writes.
void WriteConfigs(const Experiment& experiment,
                  const std::vector<WantedTraining>& trainings,
                  const fs::path& folder) {
  const size_t digits = fmt::format("{}", trainings.size() - 1).size();
  std::map<fs::path, std::string> texts;
  for (size_t i = 0; i < trainings.size(); ++i) {
    TrainConfig config = trainings[i].training.config;
    config.train.valid_every = StepsPerValidation(trainings[i].training);
    config.telemetry.every = 1;
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
  for (const std::string_view table : {kCurves, kValidations}) {
    const fs::path losses = BesideFile(request.file, table);
    if (request.collect.empty() || !Exists(losses)) continue;
    throw Error::Format("--rows-template {}: the file of losses beside it, {}, exists; remove it",
                        request.file.string(),
                        losses.string());
  }
  const std::vector<WantedTraining> trainings = ListTrainings(experiment, settings);
  const Collected found = Collect(experiment, settings, trainings, request);
  RowsTemplateReport report{
      .trainings = trainings.size(), .filled = found.cells.size(), .empty_columns = {}};
  Table table{.columns = ColumnsOfRows(experiment), .rows = {}};
  std::set<std::string> empty;
  for (size_t i = 0; i < trainings.size(); ++i) {
    Cells cells = Planned(experiment, trainings[i].training);
    const auto run = found.cells.find(i);
    if (run != found.cells.end()) {
      for (const auto& [column, text] : run->second) cells[column] = text;
    }
    Row& row = table.rows.emplace_back();
    for (const std::string& column : table.columns) {
      row.emplace_back(cells[column]);
      if (run != found.cells.end() && cells[column].empty()) empty.insert(column);
    }
  }
  report.empty_columns.assign(empty.begin(), empty.end());
  if (!request.configs.empty()) WriteConfigs(experiment, trainings, request.configs);
  for (const auto& [name, losses] : found.losses) {
    const fs::path file = BesideFile(request.file, name);
    WriteLosses(experiment, losses, report.tables[std::string(name)] = file);
  }
  WriteCsv(request.file, table);
  return report;
}

}  // namespace numsim::experiments
