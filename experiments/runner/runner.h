// Runs an experiment: distributes its trials over threads, keeps a journal of finished trials, and
// writes tables, figures, summary and manifest into one directory.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/runner/progress.h"
#include "experiments/runner/rows_argument.h"

namespace numsim::experiments {

struct RunOptions {
  Settings settings;
  std::filesystem::path out;  // DIR
  bool resume = false;        // keep the finished trials of an interrupted run
  bool take_over = false;     // run the shard although a process of another host may be running it
  int shard_index = 0;        // this run does the trials of that shard (looks.h)
  int shard_count = 1;
  // File with the costs by which trials are shared out (trial_costs.h), the same for all shards; empty:
  // Trial::cost of the experiment.
  std::filesystem::path trial_costs = {};
  // --until-decided: 0 runs one look after the other until the claims are decided. From 1 on, the run
  // does its trials up to this look and no others; Merge judges. Shards need it.
  size_t look = 0;
  // Run trials of any seeds and write no results: neither tables nor verdicts.
  bool measure_only = false;
  bool progress = false;             // show a line on stderr, rewritten in place
  ProgressHead progress_head;        // beginning of that line; may be empty
  std::vector<std::string> command;  // argv, for the manifest
  // Read before every trial and before the outputs are written; if true, nothing further begins, and
  // the run returns with RunReport::interrupted. A training in a trial saves a checkpoint and stops too;
  // other trials are not cut short.
  const std::atomic<bool>* interrupted = nullptr;
  double save_every = 300;  // seconds between the checkpoints of a training in a trial
  // Called, by any thread, with a line for the user about such a checkpoint.
  std::function<void(const std::string& line)> say = {};
};

struct RunReport {
  size_t trials_total = 0;           // trials of the whole experiment
  size_t trials_run = 0;             // trials run by this call
  size_t trials_missing = 0;         // still to be run by other shards or after --resume
  size_t shard_total = 0;            // trials of the shard of this call
  size_t shard_missing = 0;          // of them, still to be run after --resume
  bool interrupted = false;          // stopped by RunOptions::interrupted; --resume goes on
  std::vector<std::string> outputs;  // written files relative to `out`; only when complete
  std::string summary;               // text of summary.txt; only when complete
  std::vector<JudgedClaim> judged;   // the claims; only when complete
  RunScale scale;                    // what was trained; only when complete
  std::string notice;                // for the user, e.g. that figures need gnuplot; often empty
  size_t next_look = 0;              // Merge: the look that is needed to decide; 0: none
};

// Runs the trials of this shard and, when every trial of the experiment is finished, completes the
// results. During and after the run DIR holds
//   settings.json                     the settings that every shard and every resumed run must have
//   journal/SHARD-of-COUNT.jsonl      one line per finished trial, appended at once
//   journal/TRIAL-NAME.safetensors    checkpoints of the trainings of unfinished trials (training_steps.h)
// and, when the trials of all shards are in the journals,
//   TABLE.csv, verdicts.csv, FIGURE.gp .svg .pdf, summary.txt, manifest.json
//
// manifest.json is written last: where it exists, the results are complete. Its git_commit lists
// every build that measured a trial.
//
// If DIR already holds finished trials with the same settings:
//   with `resume`       they are kept, whichever shard's journal they are in; when no trial is left
//                       to run, only the outputs are written again
//   without `resume`    if trials of this shard are finished, the run starts over when DIR is
//                       complete (journals and outputs are removed first); otherwise Run throws
//                       Error and nothing is lost
// Other shards may run in the same DIR at the same time; the last to finish completes the results.
//
// Throws Error for seeds that do not judge (seeds.h); when DIR holds results of other settings (the first difference is named), an unfinished
// run while `resume` is not set, or files with the names of outputs that no run made; when another
// process is running trials of this shard in DIR (shard_owner.h); when a trial fails (finished trials
// stay in the journal, no outputs are written); when a journal is corrupt; when a file cannot be
// written.
RunReport Run(const Experiment& experiment, const RunOptions& options);

// Copies the trials of the journals of `shards` (directories of Run) into a journal in `out` and
// completes the results there. `out` may be new, one of the shards, or hold trials of the same
// settings. Throws Error when the shards disagree in settings or in the rows of a trial, when trials
// are missing (with their numbers), and for the differences of merge_check.h unless `allow` names
// them; `out` is then unchanged. The manifest records the allowed differences. Rows of timed tables
// (TableSpec::timed) may differ: those of the first shard are used.
//
// Shards of --until-decided are judged as Run does, look after look, until the claims are decided.
// If they are not, and none of the trials of the next look is finished, the results are those of the
// last look, and RunReport::next_look says which look is needed.
RunReport Merge(const Experiment& experiment,
                const std::vector<std::filesystem::path>& shards,
                const std::filesystem::path& out,
                const std::vector<std::string>& command,
                const std::vector<std::string>& allow = {});

// Judges trainings that were made elsewhere (docs/rows.md) and writes the results into `out`, as Run
// does for its own trials, without a journal. Throws Error as ReadRows does, if what is there does not
// suffice for the tables, and if `out` holds other results; nothing is written then. Requires settings
// without max_seeds.
RunReport JudgeRows(const Experiment& experiment,
                    Settings settings,
                    const std::vector<RowsArgument>& files,
                    const std::filesystem::path& out,
                    const std::vector<std::string>& command);

// How figures are drawn again.
struct Drawing {
  FigureStyle style = {};
  std::vector<std::string> figures = {};  // their names; empty: all
  // If not empty, the figures are written here, nothing else is, and the results stay as they are. Then
  // they may also be those of experiments/published, which has no manifests and not all tables.
  std::filesystem::path out = {};
};

// Draws the figures and writes the summary of a finished `directory` again from its CSV files
// (`numsim plot`), and updates the list of outputs in its manifest. Runs no trial and needs no
// journal. Of an experiment that is a file, derived tables are computed again too, and files of
// figures and tables that it no longer has are removed. Throws Error when `directory` is not complete,
// holds results of another experiment, when a CSV file is not the one that the manifest lists, for an
// unknown name of a figure, and as DrawFigure does.
RunReport Redraw(const Experiment& experiment,
                 const std::filesystem::path& directory,
                 const Drawing& drawing = {});

// Redraws the results of the experiment that settings.json names.
RunReport Redraw(const std::filesystem::path& directory, const Drawing& drawing = {});

// Returns the text of summary.txt: settings, then claims with results and verdicts, then notes. `changed`
// says what was changed after trials had been measured; "": nothing.
std::string SummaryText(const Experiment& experiment,
                        const Settings& settings,
                        const std::vector<JudgedClaim>& judged,
                        const RunScale& scale,
                        std::string_view notes,
                        std::string_view changed = {});

}  // namespace numsim::experiments
