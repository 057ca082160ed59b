// What the tests of real experiments share: small runs, a golden CSV, the rows of one point.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "experiments/core/runner.h"
#include "numsim/base/parallel.h"
#include "tests/experiments/run_fixture.h"
#include "tests/experiments/temporary_directory.h"

namespace numsim::experiments {

// Without the figures: gnuplot takes longer than everything else.
inline void RunWithoutFigures(Experiment experiment,
                              const Settings& settings,
                              const std::filesystem::path& out) {
  experiment.figures = nullptr;
  RunOptions options;
  options.settings = settings;
  options.out = out;
  Run(experiment, options);
}

// Expects TABLE.csv of a run on 1 and 3 threads to be tests/experiments/golden/EXPERIMENT.csv.
inline void ExpectGoldenCsv(const Experiment& experiment,
                            const Settings& settings,
                            const std::string& table) {
  const int before = ThreadCount();
  const TemporaryDirectory directory;
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const std::filesystem::path folder =
      std::filesystem::path(root) / "tests" / "experiments" / "golden";
  const std::string golden = Bytes(folder / (experiment.name + ".csv"));
  ASSERT_FALSE(golden.empty());
  for (const int threads : {1, 3}) {
    SetThreadCount(threads);
    const std::filesystem::path out = directory.Path() / std::to_string(threads);
    RunWithoutFigures(experiment, settings, out);
    EXPECT_EQ(Bytes(out / (table + ".csv")), golden) << threads << " threads";
  }
  SetThreadCount(before);
}

// The rows of one point, as the experiment's first table.
inline Table RowsOf(const Experiment& experiment, const Settings& settings, const Trial& trial) {
  const TableSpec& spec = experiment.tables[0];
  Table table;
  for (const Column& column : spec.columns) table.columns.push_back(column.name);
  table.rows = experiment.run(settings, trial).at(spec.name);
  return table;
}

}  // namespace numsim::experiments
