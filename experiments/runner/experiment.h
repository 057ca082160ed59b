// Defines an experiment: a list of independent trials, a function that measures one trial, and
// functions that turn the rows into tables, figures and verdicts. docs/adding-an-experiment.md
// walks through an example.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/claims/claim.h"
#include "experiments/claims/deviation.h"
#include "experiments/claims/run_settings.h"
#include "experiments/claims/scale.h"
#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"

namespace numsim::experiments {

// An option of one experiment, e.g. --formats. Values are text; the experiment parses and checks
// them in Experiment::trials.
struct Option {
  std::string name;   // without the dashes
  std::string quick;  // value under --preset quick
  std::string paper;  // value under --preset paper
  std::string help;   // one line: meaning, unit, valid values
  // Value under --preset small, for experiments that have it; if empty, the value of quick.
  std::string small = {};
  // Value under --backend cuda, with any preset; if empty, the value of the preset. Only for
  // experiments that measure nothing but times.
  std::string cuda = {};
  // Value under --preset demo, for experiments that have it; if empty, the value of quick.
  std::string demo = {};
  // Value in results that were written before the experiment had this option. If empty, such results
  // are readable only if the preset's value is empty too.
  std::string before = {};
  // Values under presets of other names; where there is none, the value of paper.
  std::map<std::string, std::string, std::less<>> others = {};
  // True: settings have the option only where its value is another than `quick`, so that results
  // without it are those of an experiment that does not have the option.
  bool optional = false;
  // Name of the option that contains this one: warmup is part of steps. If the user gives that option
  // and not this one, and this default is 80 % of the given value or more, it is scaled by the given
  // value over the default of that option.
  std::string part_of = {};
  // Name of the option that limits this one: records are at most steps. If the user gives only that
  // option, this default is cut to its value.
  std::string at_most = {};
};

// A named set of defaults: quick, paper, small, demo or a name of the experiment's own.
struct Preset {
  std::string name;
  int seeds = 1;  // number of seeds without --seeds
  // Approximate seconds on two cores with the preset's own options, for `describe`, for
  // `run --help` and for the time left of the demo; 0: not known.
  double seconds = 0;
};

struct TrialContext;

// One set of parameters with one seed, measured independently of all other trials.
struct Trial {
  std::string label;  // for progress and errors: "normal k=1024 seed=0"
  uint64_t seed = 0;
  std::map<std::string, std::string> parameters;
  double cost = 1;  // relative; expensive trials start first
  // Its arm, as contrasts of claims name it; empty: it is not one arm.
  std::string arm = {};
  // Where its training is saved (trial_context.h). Set by the run; nullptr: nothing is saved.
  const TrialContext* context = nullptr;
};

// A training of a trial, for `--rows`; defined in training_of_row.h.
struct TrainingOfRow;

// How trainings that were made elsewhere become trials, for experiments whose trials are trainings.
struct RowsOfTrainings {
  // The measured table with a row per training; empty: the experiment does not take --rows.
  std::string table = {};
  std::vector<std::string> key = {};  // its columns that say which training it is, the seed last
  std::vector<std::string> texts =
      {};  // columns of measured tables, not of the key, that hold texts
  // Returns the trainings of a trial in the order of their rows; the cells of their keys are distinct.
  std::function<std::vector<TrainingOfRow>(const Settings&, const Trial&)> trainings = {};
  // Returns whether a trial is one training, and nothing in it is changed that its configuration does not
  // say, so that `numsim train` repeats it; empty: no trial is.
  std::function<bool(const Settings&, const Trial&)> whole = {};
};

// How the learning rate of each arm is chosen on seeds that do not judge (tuning.h).
struct RateTuning {
  std::vector<std::string> options = {};  // that have the rate
  // The measured table with a row per training, with its status and valid_loss; empty: no rate is chosen.
  std::string table = {};
  // Returns the arm of a trial, without its rate; "": it trains nothing.
  std::function<std::string(const Trial&)> arm = {};
};

// The kind of the cells of a column. A number may stand as its text: "1e-05", "nan".
enum class CellKind : uint8_t {
  kAny,  // not said
  kText,
  kWhole,
  kNumber,
};

struct Column {
  std::string name;
  std::string meaning;  // with unit
  CellKind kind = CellKind::kAny;
};

// Returns `first`, followed by `rest`.
inline std::vector<Column> Joined(std::vector<Column> first, const std::vector<Column>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

// A CSV file. Derived tables are computed from the finished measured tables, not by trials.
struct TableSpec {
  std::string name;  // NAME.csv
  bool derived = false;
  std::vector<Column> columns;
  // True for a table of times in an experiment whose other tables hold none: Experiment::run may
  // read the clock for its rows, which differ from run to run. Trials still run in parallel.
  // Neither the summary nor an untimed table may depend on it; a figure may, if its source_csv
  // names it.
  bool timed = false;
};

// Rows by table name, with cells in the order of the table's columns.
using Rows = std::map<std::string, std::vector<Row>>;

// The note of `numsim describe` and summary.txt about the times of an experiment or of a table.
inline constexpr std::string_view kTimedNote =
    "The times belong to the machine and the run that measured them (see manifest.json); another "
    "run gives other numbers.";

// A change for a user whose own training shows the effect that the experiment studies.
struct Advice {
  std::string text;                 // no stronger than the paper: the verdicts stand beside it
  std::vector<std::string> claims;  // the evidence: ids of claims
};

// The file that an experiment is, unless it was compiled in. It may be corrected between the runs of one
// result directory.
struct ExperimentFile {
  std::string sha256;  // of its bytes; empty: compiled in
  std::string claims;  // SHA-256 of what it claims
  // Throws Error unless rows of these settings follow from what the file says today.
  std::function<void(const Settings&)> check_rows = {};
};

struct Experiment {
  std::string name;
  std::string title;  // one line for `numsim list`
  // Figure, equation or section of the source, with its key in docs/references.md: "Figure 5 of
  // [Fishman]". `numsim list` and `describe` resolve the key.
  std::string reproduces;
  std::string description;  // text of `numsim describe`
  std::vector<Option> options;
  std::vector<Preset> presets = {{"quick"}, {"paper"}};
  std::vector<TableSpec> tables;
  // True: trials run one after another instead of in many threads at once, so that the kernels of a
  // trial have every thread and all the memory.
  bool exclusive = false;
  // True: all measured values are times. Trials run as if exclusive; `run` may read the clock, the
  // number of threads and the backend, and its rows differ from run to run.
  bool timed = false;
  // Returns the trials in the order of the rows of the CSV files. Throws Error for a bad option.
  std::function<std::vector<Trial>(const Settings&)> trials;
  // Measures one trial. Called from many threads at once unless exclusive or timed. The result must
  // depend on the arguments alone, except in timed tables and timed experiments. Throws Error for
  // bad input (a file of --input).
  std::function<Rows(const Settings&, const Trial&)> run;
  RowsOfTrainings rows = {};
  RateTuning tuning = {};
  // Adds the rows of the derived tables, from the measured tables alone. With --rows, tables and
  // trials that were not given have no rows.
  std::function<void(const Settings&, Tables&)> derive;
  std::function<std::vector<Figure>(const Settings&, const Tables&)> figures;
  // The claims that a run judges, in the order of its summary.
  std::vector<ClaimSpec> claims;
  // Settings of the paper that are in no list that experiments share.
  std::vector<PaperSetting> paper_settings;
  // The paper's settings of the list that all trainings share (shared/paper_training.h), and those of them
  // from which the trainings of a run deviate; empty: no training is compared with a paper.
  std::vector<SharedSetting> training_settings;
  std::function<std::vector<Deviation>(const Settings&)> deviations;
  // Returns the scale of a run's largest training, beside the paper's; empty: nothing is trained.
  std::function<TrainedScale(const Settings&)> trained;
  // The advice of `numsim describe`, printed with the published verdicts.
  std::vector<Advice> advice;
  // Returns the scale of a run in words, e.g. "2 layers, width 64, 300 steps"; seeds are added. What
  // an input file limits is read from the tables.
  std::function<std::string(const Settings&, const Tables&)> scale;
  // Returns the options that had no effect with these settings; summaries leave them out.
  std::function<std::vector<std::string>(const Settings&)> unused_options;
  // Returns free text below the claims.
  std::function<std::string(const Settings&, const Tables&)> notes;
  // Returns a text of results that an older numsim wrote with today's names of formats; empty: as
  // FromFormerNames of numsim/formats/format_names.h. Today's texts must not change.
  std::function<std::string(const std::string&)> from_former_names;
  ExperimentFile file = {};
};

// Returns every experiment, in the order of `numsim list`. experiments/list.cc holds the only list.
const std::vector<Experiment>& AllExperiments();

// Returns the experiment of that name, or nullptr when there is none.
const Experiment* FindExperiment(std::string_view name);

}  // namespace numsim::experiments
