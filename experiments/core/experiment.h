// What an experiment is: a list of independent points, a function that measures one, and what to
// make of the rows. docs/adding-an-experiment.md walks through one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"

namespace numsim::experiments {

// An option of one experiment, e.g. --formats. Values are text; the experiment parses and checks
// them in `points`.
struct Option {
  std::string name;   // without the dashes
  std::string quick;  // value under --preset quick
  std::string paper;  // value under --preset paper
  std::string help;   // one line: meaning, unit, valid values
  // Value under --preset small, of experiments that have it; empty: that of quick.
  std::string small = {};
  // Value under --backend cuda, with either preset; empty: that of the preset. For experiments that
  // measure times alone.
  std::string cuda = {};
  // Value under --preset demo, of experiments that have it; empty: that of quick.
  std::string demo = {};
};

// A set of defaults: quick, paper, small or demo.
struct Preset {
  std::string name;
  int seeds = 1;  // without --seeds
  // Of demo: about how long it takes on two cores, for the time left (experiments/demo.h).
  double seconds = 0;
};

// Everything that determines the rows, and nothing else: no path, thread count or backend.
struct Settings {
  std::string preset;                          // one of the experiment's
  uint64_t seed = 0;                           // first seed
  int seeds = 1;                               // seed, seed + 1, ...
  std::map<std::string, std::string> options;  // every option after defaults

  // The value of an option. Aborts when the experiment does not declare it.
  const std::string& Get(std::string_view name) const;
  // The same as a number. Throws Error naming the option, what was given and the range.
  int64_t GetInteger(std::string_view name, int64_t low, int64_t high) const;
  double GetDouble(std::string_view name, double low, double high) const;
  // yes or no. Throws Error naming the option for anything else.
  bool GetYes(std::string_view name) const;
  // A list separated by commas; empty pieces are an error.
  std::vector<std::string> GetList(std::string_view name) const;
  // A list of integers.
  std::vector<int64_t> GetIntegers(std::string_view name, int64_t low, int64_t high) const;
};

// One point: one set of parameters with one seed, measured independently of every other.
struct Trial {
  std::string label;  // for progress and errors: "normal k=1024 seed=0"
  uint64_t seed = 0;
  std::map<std::string, std::string> parameters;
  double cost = 1;  // relative; expensive points start first
};

struct Column {
  std::string name;
  std::string meaning;  // with unit
};

// A CSV. `derived` tables are computed from the finished measured ones, not by points.
struct TableSpec {
  std::string name;  // NAME.csv
  bool derived = false;
  std::vector<Column> columns;
  // Holds times in an experiment whose other tables do not: `run` may read the clock for its rows,
  // which differ from run to run. Points run side by side as ever. Neither the summary nor a table
  // that is not timed may be made from it; a figure may, if its source_csv names it.
  bool timed = false;
};

// Rows by table name, cells in the order of the table's columns.
using Rows = std::map<std::string, std::vector<std::vector<std::string>>>;
using Tables = std::map<std::string, Table>;

struct Claim {
  std::string claim;     // what the paper says, with its place
  std::string measured;  // what came out, with numbers
  std::string verdict;   // "holds", "does not hold", "holds in part", "not measured": one of these
};

struct Summary {
  std::vector<Claim> claims;
  std::string notes;  // free text below the claims
};

// What `numsim describe` and summary.txt say of times, of a whole experiment or of a table.
inline constexpr std::string_view kTimedNote =
    "The times belong to the machine and the run that measured them (manifest.json says which): "
    "another run gives other numbers.";

struct Experiment {
  std::string name;
  std::string title;        // one line for `numsim list`
  std::string reproduces;   // figure, equation or section of the source
  std::string description;  // for `numsim describe`
  std::vector<Option> options;
  std::vector<Preset> presets = {{"quick"}, {"paper"}};
  std::vector<TableSpec> tables;
  // Points run one after another instead of in many threads at once, so that the kernels of a point
  // have every thread and all the memory.
  bool exclusive = false;
  // All measured values are times. Points run as if exclusive; `run` may read the clock, the number
  // of threads and the backend, and its rows differ from run to run.
  bool timed = false;
  // The points in the order of the CSV's rows. Throws Error for a bad option.
  std::function<std::vector<Trial>(const Settings&)> trials;
  // Measures one point; called from many threads at once unless exclusive. Must depend on its
  // arguments alone, but for timed tables, unless timed.
  // Throws Error for bad input (a file of --input).
  std::function<Rows(const Settings&, const Trial&)> run;
  // Adds the derived tables, from the measured ones alone.
  std::function<void(const Settings&, Tables&)> derive;
  std::function<std::vector<Figure>(const Settings&, const Tables&)> figures;
  std::function<Summary(const Settings&, const Tables&)> summarise;
};

// Every experiment, in the order of `numsim list`: the one list (experiments/list.cc).
const std::vector<Experiment>& AllExperiments();

// nullptr when there is none of that name.
const Experiment* FindExperiment(std::string_view name);

}  // namespace numsim::experiments
