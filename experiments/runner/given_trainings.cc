#include "experiments/runner/given_trainings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiments/runner/model_size.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

std::string RangeText(const std::set<double>& values) {
  const auto text = [](double value) {
    return value >= 1e6 ? fmt::format("{:.3g} million", value / 1e6) : fmt::format("{}", value);
  };
  const std::string low = text(*values.begin()), high = text(*values.rbegin());
  return low == high ? low : fmt::format("{} to {}", low, high);
}

// Tables may hold fewer digits than a run.
bool Near(const std::string& a, const std::string& b) {
  constexpr double kDigits = 1e-6;
  try {
    const double x = Cell(a).Number(), y = Cell(b).Number();
    return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= kDigits * std::abs(y);
  } catch (const Error&) {
    return false;
  }
}

std::vector<size_t> AllOf(const std::vector<WantedTraining>& trainings) {
  std::vector<size_t> all(trainings.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

}  // namespace

const TableSpec& MeasuredTable(const Experiment& experiment, const std::string& name) {
  Names measured;
  for (const TableSpec& table : experiment.tables) {
    if (table.name == name && !table.derived) return table;
    if (!table.derived) measured.push_back(table.name);
  }
  const std::string list = fmt::format("{}", fmt::join(measured, ", "));
  throw Error::Format("--rows {}=...: {}", name, NotOneOf("table", name, list).what());
}

Names NamesOf(const std::vector<Column>& columns) {
  Names names;
  names.reserve(columns.size());
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

// Returns the place of a column in the key; nothing if it is not there.
std::optional<size_t> PlaceInKey(const Experiment& experiment, const std::string& column) {
  const Names& key = experiment.rows.key;
  const auto found = std::find(key.begin(), key.end(), column);
  if (found == key.end()) return std::nullopt;
  return static_cast<size_t>(found - key.begin());
}

TrainingFinder::TrainingFinder(const Experiment& experiment,
                               const std::vector<WantedTraining>& trainings,
                               const std::vector<size_t>& among,
                               const std::vector<Column>& columns)
    : experiment_(experiment), trainings_(trainings), among_(among) {
  const Names names = NamesOf(columns);
  for (size_t k = 0; k < experiment.rows.key.size(); ++k) {
    if (Has(names, experiment.rows.key[k])) places_.push_back(k);
  }
}

size_t TrainingFinder::Find(const RowsTable& file, size_t row) {
  // Rows of one training mostly follow each other.
  if (last_ && Matches(file, row, *last_)) return *last_;
  for (const size_t training : among_) {
    if (Matches(file, row, training)) return *(last_ = training);
  }
  throw NotFound(file, row);
}

bool TrainingFinder::Matches(const RowsTable& file, size_t row, size_t training) const {
  return std::all_of(places_.begin(), places_.end(), [&](size_t place) {
    return SameCell(file.Text(row, experiment_.rows.key[place]),
                    trainings_[training].training.key[place].Text());
  });
}

Error TrainingFinder::NotFound(const RowsTable& file, size_t row) const {
  std::vector<size_t> candidates = among_;
  std::string with;
  for (const size_t place : places_) {
    const std::string& column = experiment_.rows.key[place];
    const std::string text = file.Text(row, column);
    Names known;
    for (const size_t i : candidates) {
      const std::string value = trainings_[i].training.key[place].Text();
      if (!Has(known, value)) known.push_back(value);
    }
    std::erase_if(candidates, [&](size_t i) {
      return !SameCell(text, trainings_[i].training.key[place].Text());
    });
    if (candidates.empty()) {
      const std::string list = fmt::format("{}", fmt::join(known, ", "));
      return file.Bad(row,
                      column,
                      fmt::format("no training has '{}'{}; expected {}{}",
                                  text,
                                  with.empty() ? "" : " with" + with,
                                  list,
                                  DidYouMean(text, list)));
    }
    with += fmt::format(" {}={}", column, text);
  }
  NUMSIM_CHECK(false, "{}: the row has a training", file.Path().string());
}

GivenTrainings::GivenTrainings(const Experiment& experiment,
                               const std::vector<WantedTraining>& trainings,
                               const fs::path& path)
    : experiment_(experiment),
      trainings_(trainings),
      spec_(MeasuredTable(experiment, experiment.rows.table)),
      columns_(NamesOf(spec_.columns)),
      file_(path, ColumnsOfRows(experiment)) {
  TrainingFinder finder(experiment, trainings, AllOf(trainings), spec_.columns);
  for (size_t row = 0; row < file_.Size(); ++row) Add(row, finder);
  if (rows_.empty()) throw Error::Format("{}: no row has an outcome", path.string());
}

std::string GivenTrainings::Scale() const {
  const std::string_view unit = UnitOfTokens(trainings_.front().training.config);
  return fmt::format("{} parameters, {} {}", RangeText(parameters_), RangeText(tokens_), unit);
}

std::string GivenTrainings::Note() const {
  std::string text = fmt::format(
      "{} of {} trainings are there{}. Run directories: {} have the digest of their row and the outcomes "
      "that it states; {} are not here, so that nothing shows that their rows are right; {} rows name "
      "none.",
      rows_.size(),
      trainings_.size(),
      MissingText(),
      checked_,
      absent_,
      rows_.size() - checked_ - absent_);
  if (!data_.empty()) {
    text += fmt::format(" Their data are not those of the settings: {}.", fmt::join(data_, "; "));
  }
  return text;
}

std::string GivenTrainings::MissingText() const {
  constexpr size_t kNamed = 3;
  Names missing;
  for (size_t i = 0; i < trainings_.size(); ++i) {
    if (!rows_.contains(i)) missing.push_back(trainings_[i].Text(experiment_));
  }
  if (missing.empty()) return "";
  const size_t others = missing.size() - std::min(kNamed, missing.size());
  missing.resize(missing.size() - others);
  return fmt::format("; missing: {}{}",
                     fmt::join(missing, "; "),
                     others > 0 ? fmt::format("; and {} more", others) : "");
}

// A row of the template that was not filled.
bool GivenTrainings::IsEmpty(size_t row) const {
  return std::all_of(columns_.begin(),
                     columns_.end(),
                     [&](const std::string& column) {
                       return PlaceInKey(experiment_, column) || file_.Text(row, column).empty();
                     }) &&
         file_.Text(row, kRunColumn).empty();
}

void GivenTrainings::Add(size_t row, TrainingFinder& finder) {
  const size_t training = finder.Find(file_, row);
  const std::string& last = experiment_.rows.key.back();
  const auto [first, added] = line_of_.emplace(training, file_.Line(row));
  if (!added) {
    throw file_.Bad(row,
                    last,
                    fmt::format("the training {} is in line {} too",
                                trainings_[training].Text(experiment_),
                                first->second));
  }
  if (IsEmpty(row)) return;
  const TrainingOfRow& wanted = trainings_[training].training;
  Row cells;
  for (const std::string& column : columns_) {
    const std::optional<size_t> place = PlaceInKey(experiment_, column);
    if (!place) CheckOutcome(row, column);
    cells.push_back(place ? wanted.key[*place] : Cell(file_.Text(row, column)));
  }
  CheckLength(row, wanted.config);
  CheckSize(row, wanted.config);
  CheckRun(row, wanted);
  rows_[training] = std::move(cells);
}

void GivenTrainings::CheckOutcome(size_t row, const std::string& column) const {
  if (Has(experiment_.rows.texts, column)) return;
  if (column != "status") {
    file_.Number(row, column);
    return;
  }
  const std::string text = file_.Text(row, column);
  if (text == "finished" || text == "diverged") return;
  throw file_.Bad(
      row,
      column,
      fmt::format(
          "'{}' is not one of finished, diverged{}", text, DidYouMean(text, "finished, diverged")));
}

// Checks the steps and tokens of a training.
void GivenTrainings::CheckLength(size_t row, const TrainConfig& config) {
  const auto planned = static_cast<double>(config.train.steps);
  const double steps = file_.Count(row, "steps");
  const bool finished = file_.Text(row, "status") == "finished";
  if (finished ? steps != planned : steps > planned) {
    throw file_.Bad(row,
                    "steps",
                    fmt::format("expected {}{} steps, as the settings say, found {}",
                                finished ? "the " : "at most ",
                                planned,
                                steps));
  }
  if (finished && std::isnan(file_.Number(row, "valid_loss"))) {
    throw file_.Bad(row, "valid_loss", "expected a number, since the training has finished");
  }
  const double tokens = file_.Count(row, kTokensColumn);
  if (tokens != steps * TokensPerStep(config)) {
    throw file_.Bad(row,
                    kTokensColumn,
                    fmt::format("expected {:.0f} for {:.0f} steps of these settings, found {:.0f}",
                                steps * TokensPerStep(config),
                                steps,
                                tokens));
  }
  tokens_.insert(planned * TokensPerStep(config));
}

// Checks the number of parameters: the same for equal models, and near that of the settings.
void GivenTrainings::CheckSize(size_t row, const TrainConfig& config) {
  const double parameters = file_.Count(row, kParametersColumn);
  std::string model;
  for (const ConfigKey& key : ConfigKeys(config)) {
    if (key.name.starts_with("model.") || key.name.starts_with("data.")) model += key.value + " ";
  }
  const auto [first, added] = of_model_.emplace(model, std::pair(parameters, file_.Line(row)));
  if (!added && first->second.first != parameters) {
    throw file_.Bad(row,
                    kParametersColumn,
                    fmt::format("{:.0f}, but line {} has {:.0f} for the same model",
                                parameters,
                                first->second.second,
                                first->second.first));
  }
  // Another vocabulary or text encoder changes the number; another width or depth changes it more.
  constexpr double kFactor = 2;
  const double expected = CountParameters(config).all;
  const bool known = config.model.kind != ModelKind::kMlp;
  if (known && (parameters > kFactor * expected || kFactor * parameters < expected)) {
    throw file_.Bad(
        row,
        kParametersColumn,
        fmt::format(
            "expected about {:.3g}, as the settings say, found {:.0f}", expected, parameters));
  }
  parameters_.insert(parameters);
}

// Checks digest, configuration and outcomes of a run directory.
void GivenTrainings::CheckRun(size_t row, const TrainingOfRow& training) {
  const std::string run = file_.Text(row, kRunColumn), digest = file_.Text(row, kDigestColumn);
  if (run.empty() && digest.empty()) return;
  const bool is_digest =
      digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (run.empty() || !is_digest) {
    throw file_.Bad(row,
                    run.empty() ? kRunColumn : kDigestColumn,
                    run.empty() ? "expected the run directory of the digest, found nothing"
                                : fmt::format("expected the SHA-256 of the run, 64 digits of 0-9 "
                                              "and a-f, found '{}'",
                                              digest));
  }
  const auto [first, added] = line_of_digest_.emplace(digest, file_.Line(row));
  if (!added) {
    throw file_.Bad(
        row, kDigestColumn, fmt::format("is that of line {} too: one run twice", first->second));
  }
  const fs::path directory = file_.Path().parent_path() / run;
  if (!Exists(directory)) {
    ++absent_;
    return;
  }
  if (const std::string found = RunDigest(directory); found != digest) {
    throw file_.Bad(row,
                    kDigestColumn,
                    fmt::format("is not that of {}, which has {}", directory.string(), found));
  }
  TrainingRun found = ReadTrainingRun(directory);
  AddDoublings(directory, training, found);
  CompareWith(found, directory, row, training.config);
  ++checked_;
}

void GivenTrainings::CompareWith(const TrainingRun& run,
                                 const fs::path& directory,
                                 size_t row,
                                 const TrainConfig& config) {
  const ConfigDifferences differences = CompareConfigs(run.config, config);
  if (!differences.others.empty()) {
    throw file_.Bad(
        row,
        kRunColumn,
        fmt::format("{} is another training: {}", directory.string(), differences.others.front()));
  }
  data_.insert(differences.of_data.begin(), differences.of_data.end());
  for (const auto& [column, expected] : run.outcomes) {
    const bool here = Has(columns_, column) || column == kParametersColumn;
    if (!here || PlaceInKey(experiment_, column)) continue;
    const std::string found = file_.Text(row, column);
    if (found == expected || Near(found, expected)) continue;
    throw file_.Bad(
        row, column, fmt::format("'{}', but {} has '{}'", found, directory.string(), expected));
  }
}

}  // namespace numsim::experiments
