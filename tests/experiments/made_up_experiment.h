// A small experiment for tests of the runner: cheap, with trials of unequal cost, rows of unequal
// number, a cell that CSV has to quote, a measured and a derived table, and a figure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/runner/experiment.h"
#include "numsim/base/error.h"

namespace numsim::experiments {

inline std::vector<Trial> MadeUpTrials(const Settings& settings) {
  std::vector<Trial> trials;
  settings.GetInteger("rows", 1, 100);
  for (const std::string& shape : settings.GetList("shapes")) {
    for (int k = 0; k < settings.seeds; ++k) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(k);
      trials.push_back({.label = shape + " seed=" + FormatCell(seed),
                        .seed = seed,
                        .parameters = {{"shape", shape}},
                        .cost = static_cast<double>(trials.size() * 7 % 5)});
    }
  }
  return trials;
}

inline Rows MadeUpRun(const Settings& settings, const Trial& trial) {
  Rows rows;
  const std::string& shape = trial.parameters.at("shape");
  const int64_t count = settings.GetInteger("rows", 1, 100) + static_cast<int64_t>(trial.seed % 2);
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(trial.seed * 31 + shape.size() * 7) / (i + 3.0);
    rows["values"].push_back({shape, trial.seed, i, value, "a \"b\", c"});
  }
  return rows;
}

inline void MadeUpDerive(const Settings& settings, Tables& tables) {
  const Table& values = tables.at("values");
  for (const std::string& shape : settings.GetList("shapes")) {
    double sum = 0;
    for (size_t i = 0; i < values.rows.size(); ++i) {
      if (values.Text(i, "shape") == shape) sum += values.Number(i, "value");
    }
    tables["sums"].rows.push_back({shape, sum});
  }
}

inline std::vector<Figure> MadeUpFigures(const Settings&, const Tables& tables) {
  Series series{.label = "sum", .x = {}, .y = {}, .low = {}, .high = {}};
  const Table& sums = tables.at("sums");
  for (size_t i = 0; i < sums.rows.size(); ++i) {
    series.x.push_back(static_cast<double>(i));
    series.y.push_back(sums.Number(i, "sum"));
  }
  const Panel panel{
      .title = "sums", .x = {.label = "shape"}, .y = {.label = "sum"}, .series = {series}};
  return {{.name = "sums", .title = "Sums", .columns = 1, .panels = {panel}, .source_csv = "sums"}};
}

inline ClaimSpec MadeUpClaim() {
  ClaimSpec claim;
  claim.id = "made_up/positive";
  claim.statement = "Every sum is positive.";
  claim.kind = ClaimKind::kExact;
  claim.contrast = "the sums";
  claim.scale = "Made up, Section 1.";
  claim.evidence = [](const Settings&, const Tables& tables) {
    const Frame sums = tables.at("sums");
    Evidence evidence;
    evidence.exact = sums.Where([](const Frame& row) { return row.Number("sum") <= 0; }).Empty();
    evidence.measured = "The first sum is " + sums.Text("sum") + ".";
    return evidence;
  };
  return claim;
}

// Without the figure: gnuplot takes longer than everything else.
inline Experiment MadeUpExperiment() {
  Experiment experiment;
  experiment.name = "made_up";
  experiment.title = "sums of made-up values";
  experiment.reproduces = "nothing";
  experiment.options = {
      {.name = "shapes", .quick = "ab,cde,f", .paper = "ab,cde,f,ghij", .help = "names"},
      {.name = "rows", .quick = "2", .paper = "5", .help = "rows per trial, 1 to 100"},
  };
  experiment.tables = {
      {.name = "values",
       .columns = {{"shape", ""}, {"seed", ""}, {"row", ""}, {"value", ""}, {"remark", ""}}},
      {.name = "sums", .derived = true, .columns = {{"shape", ""}, {"sum", ""}}},
  };
  experiment.trials = MadeUpTrials;
  experiment.run = MadeUpRun;
  experiment.derive = MadeUpDerive;
  experiment.claims = {MadeUpClaim()};
  experiment.notes = [](const Settings&, const Tables&) { return "A note."; };
  return experiment;
}

}  // namespace numsim::experiments
