// Shared by the tests of real experiments: small runs, a golden CSV, the rows of one trial.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "experiments/runner/runner.h"
#include "numsim/base/parallel.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {

// Without the figures: gnuplot takes longer than everything else.
inline RunReport RunWithoutFigures(Experiment experiment,
                                   const Settings& settings,
                                   const std::filesystem::path& out) {
  experiment.figures = nullptr;
  RunOptions options;
  options.settings = settings;
  options.out = out;
  return Run(experiment, options);
}

// TABLE.csv of a run, which is to be the same on 1 and 3 threads.
class RunOnThreads {
 public:
  RunOnThreads(const Experiment& experiment, const Settings& settings, const std::string& table)
      : file_(table + ".csv") {
    const int before = ThreadCount();
    for (const int threads : {1, 3}) {
      SetThreadCount(threads);
      RunWithoutFigures(experiment, settings, directory_.Path() / std::to_string(threads));
    }
    SetThreadCount(before);
    EXPECT_TRUE(Csv() == Bytes(directory_.Path() / "3" / file_)) << "3 threads change " << file_;
  }

  std::string Csv() const { return Bytes(directory_.Path() / "1" / file_); }
  Table Read() const { return ReadCsv(directory_.Path() / "1" / file_); }

 private:
  const TemporaryDirectory directory_;
  const std::string file_;
};

// The bytes of tests/experiments/golden/NAME.csv.
inline std::string GoldenCsv(const std::string& name) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  if (root == nullptr) return "NUMSIM_SOURCE_DIR is not set";
  return Bytes(std::filesystem::path(root) / "tests" / "experiments" / "golden" / (name + ".csv"));
}

// Expects TABLE.csv of a run on 1 and 3 threads to be golden/EXPERIMENT.csv.
inline void ExpectGoldenCsv(const Experiment& experiment,
                            const Settings& settings,
                            const std::string& table) {
  EXPECT_EQ(RunOnThreads(experiment, settings, table).Csv(), GoldenCsv(experiment.name));
}

// The cells of some columns of a row, joined by blanks.
inline std::string CellsOf(const Table& table,
                           size_t row,
                           std::initializer_list<std::string_view> columns) {
  std::string text;
  for (const std::string_view column : columns) {
    text += (text.empty() ? "" : " ") + table.Text(row, column);
  }
  return text;
}

// The rows of one trial, as the experiment's first table.
inline Table RowsOf(const Experiment& experiment, const Settings& settings, const Trial& trial) {
  const TableSpec& spec = experiment.tables[0];
  Table table;
  for (const Column& column : spec.columns) table.columns.push_back(column.name);
  table.rows = experiment.run(settings, trial).at(spec.name);
  return table;
}

}  // namespace numsim::experiments
