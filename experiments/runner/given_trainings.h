// Reads the file of trainings of --rows: a row per training, each cell of which is checked.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/runner/given_rows.h"
#include "experiments/runner/rows_table.h"
#include "experiments/runner/training_run.h"

namespace numsim::experiments {

// Returns the measured table of that name. Throws Error naming --rows and the nearest one.
const TableSpec& MeasuredTable(const Experiment& experiment, const std::string& name);
std::vector<std::string> NamesOf(const std::vector<Column>& columns);
// Returns the place of a column in the key; nothing if it is not there.
std::optional<size_t> PlaceInKey(const Experiment& experiment, const std::string& column);

// Finds the training that a row is of by the columns of the key that the file has.
class TrainingFinder {
 public:
  // Looks among the trainings with these numbers.
  TrainingFinder(const Experiment& experiment,
                 const std::vector<WantedTraining>& trainings,
                 const std::vector<size_t>& among,
                 const std::vector<Column>& columns);
  // Returns the number of the first training of which the row may be. Throws Error naming the first
  // column of the key without one.
  size_t Find(const RowsTable& file, size_t row);

 private:
  bool Matches(const RowsTable& file, size_t row, size_t training) const;
  Error NotFound(const RowsTable& file, size_t row) const;

  const Experiment& experiment_;
  const std::vector<WantedTraining>& trainings_;
  std::vector<size_t> among_;
  std::vector<size_t> places_;  // in the key, of the columns that the file has
  std::optional<size_t> last_;  // found
};

class GivenTrainings {
 public:
  // Throws Error naming file, line and column for a cell that is not as docs/rows.md says, and if no
  // row has an outcome.
  GivenTrainings(const Experiment& experiment,
                 const std::vector<WantedTraining>& trainings,
                 const std::filesystem::path& path);

  const RowsTable& File() const { return file_; }
  // Returns the rows of the table of the trainings, by the number of the training.
  const std::map<size_t, Row>& Rows() const { return rows_; }
  // Return the texts of GivenRows.
  std::string Scale() const;
  std::string Note() const;

 private:
  void Add(size_t row, TrainingFinder& finder);
  bool IsEmpty(size_t row) const;
  void CheckOutcome(size_t row, const std::string& column) const;
  void CheckLength(size_t row, const TrainConfig& config);
  void CheckSize(size_t row, const TrainConfig& config);
  void CheckRun(size_t row, const TrainingOfRow& training);
  void CompareWith(const TrainingRun& run,
                   const std::filesystem::path& directory,
                   size_t row,
                   const TrainConfig& config);
  std::string MissingText() const;

  const Experiment& experiment_;
  const std::vector<WantedTraining>& trainings_;
  const TableSpec& spec_;
  std::vector<std::string> columns_;  // of the table
  RowsTable file_;
  std::map<size_t, Row> rows_;
  std::map<size_t, size_t> line_of_;                           // by training
  std::map<std::string, std::pair<double, size_t>> of_model_;  // its parameters, and their line
  std::map<std::string, size_t> line_of_digest_;
  std::set<double> parameters_, tokens_;
  std::set<std::string> data_;  // differences of the data of runs
  size_t checked_ = 0, absent_ = 0;
};

}  // namespace numsim::experiments
