// Runs an experiment: points over threads, a journal of finished trials, tables, figures, summary
// and manifest in one directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/core/experiment.h"
#include "experiments/core/progress.h"

namespace numsim::experiments {

struct RunOptions {
  Settings settings;
  std::filesystem::path out;  // DIR
  bool resume = false;        // keep finished trials of an interrupted run
  int shard_index = 0;        // this run does points with index % shard_count == shard_index
  int shard_count = 1;
  bool progress = false;             // a line on stderr, rewritten in place
  ProgressHead progress_head;        // what it begins with; none: nothing
  std::vector<std::string> command;  // argv, for the manifest
};

struct RunReport {
  size_t trials_total = 0;           // of the whole experiment
  size_t trials_run = 0;             // by this call
  size_t trials_missing = 0;         // still to be run by other shards; 0: the results are complete
  std::vector<std::string> outputs;  // written files relative to `out`; only when complete
  std::string summary;               // text of summary.txt; only when complete
  std::vector<Claim> claims;         // those of the summary
  std::string notice;                // for the user, e.g. figures need gnuplot; often empty
};

// What DIR holds while it runs and after:
//   settings.json                     the settings that every shard and resume must equal
//   journal/SHARD-of-COUNT.jsonl      one line per finished point, appended at once
// and, when all points of all shards are in the journals,
//   TABLE.csv, FIGURE.gp .svg .pdf, summary.txt, manifest.json
//
// manifest.json is written last: where it is, the results are complete. Its git_commit lists every
// build that measured a point.
//
// Points that are finished already, with the same settings:
//   with `resume`       they are kept, whichever shard's journal they are in; when none is left to
//                       run, only the outputs are written again
//   without `resume`    when points of this shard are finished: the run starts over if DIR is
//                       complete (journals and outputs are removed first), else it is an Error
//                       (nothing is lost)
// Other shards may run in the same DIR at the same time; whoever finishes last completes it.
//
// Throws Error: DIR holds results of other settings (the first difference is named), an unfinished
// run and `resume` is not set, or files of the outputs' names that no run made; another process is
// running this shard in DIR; a point fails (the finished ones stay in the journal, no outputs are
// written); a journal is corrupt; a file cannot be written.
RunReport Run(const Experiment& experiment, const RunOptions& options);

// Copies the points of the journals of `shards` (directories of Run) into a journal in `out` and
// completes the results there. `out` may be new, one of the shards, or hold points of the same
// settings. Throws Error when the shards disagree in settings or in the rows of a point, or when
// points are missing (how many); `out` then is as it was. Rows of timed tables (TableSpec) may
// differ: those of the first shard stay.
RunReport Merge(const Experiment& experiment,
                const std::vector<std::filesystem::path>& shards,
                const std::filesystem::path& out,
                const std::vector<std::string>& command);

// Draws the figures and the summary of a finished DIR again from its CSV files (`numsim plot`) and
// brings the list of outputs in its manifest up to date. No point is run, no journal needed.
// Throws Error when DIR is not complete, is of another experiment, or when a CSV file is not the
// one that the manifest lists.
RunReport Redraw(const Experiment& experiment, const std::filesystem::path& directory);

// The same; finds the experiment by the name in settings.json.
RunReport Redraw(const std::filesystem::path& directory);

// Text of summary.txt: claims, measured, verdicts, notes.
std::string SummaryText(const Experiment& experiment, const Settings& settings, const Summary& s);

}  // namespace numsim::experiments
