#include "experiments/core/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <system_error>
#include <utility>

#include "experiments/core/completion.h"
#include "experiments/core/journal.h"
#include "experiments/core/progress.h"
#include "experiments/core/result_directory.h"
#include "experiments/core/shard_owner.h"
#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {
namespace {

// The trials of a run and those that it still has to do.
struct Task {
  const Experiment& experiment;
  const RunOptions& options;
  std::vector<Trial> trials;      // of all looks
  Settings look;                  // the settings of this look: `seeds` is its number of seeds
  bool resume;                    // keep finished trials
  std::vector<size_t> shard;      // indices of this shard's trials in this look
  std::vector<size_t> todo = {};  // indices of its unfinished trials, expensive ones first
};

// Returns true if the trial belongs to the look of these settings.
bool IsOfLook(const Trial& trial, const Settings& look) {
  return trial.seed - look.seed < static_cast<uint64_t>(look.seeds);
}

std::vector<size_t> ShardTrials(const std::vector<Trial>& trials,
                                const Settings& look,
                                const RunOptions& options) {
  std::vector<size_t> shard;
  for (size_t i = static_cast<size_t>(options.shard_index); i < trials.size();
       i += static_cast<size_t>(options.shard_count)) {
    if (IsOfLook(trials[i], look)) shard.push_back(i);
  }
  return shard;
}

void CheckShard(const RunOptions& options) {
  if (options.settings.max_seeds > 0 && options.shard_count != 1) {
    throw Error::Format(
        "--shard {}/{}: not with --until-decided, which needs the results of all trials",
        options.shard_index,
        options.shard_count);
  }
  if (options.shard_count >= 1 && options.shard_index >= 0 &&
      options.shard_index < options.shard_count) {
    return;
  }
  throw Error::Format(
      "--shard {}/{}: expected I/N with 0 <= I < N", options.shard_index, options.shard_count);
}

// Keeps or removes trials of this shard that are already finished, or throws Error; see Run in
// runner.h for the rules.
void SettleEarlierTrials(const Task& task, FinishedTrials& finished) {
  const auto is_finished = [&](size_t i) { return finished.contains(i); };
  const auto count = std::count_if(task.shard.begin(), task.shard.end(), is_finished);
  if (task.resume || count == 0) return;
  const std::filesystem::path& out = task.options.out;
  std::error_code ignored;
  if (!std::filesystem::exists(out / kManifestFile, ignored)) {
    throw Error::Format(
        "{}: holds an unfinished run ({} of {} trials of this shard); use --resume to continue it "
        "or another --out",
        out.string(),
        count,
        task.shard.size());
  }
  RemoveOutputs(task.experiment, out);
  RemoveJournals(out);
  finished.clear();
}

// A shard that this process runs: nobody else writes its trials.
struct OwnShard {
  std::unique_ptr<ShardOwner> owner;
  std::unique_ptr<Journal> journal;  // nullptr when no trial is left to run
};

// Fills task.todo and returns the shard to write to.
OwnShard Start(Task& task) {
  const std::filesystem::path& out = task.options.out;
  CheckDirectory(task.experiment, task.options.settings, out);
  MakeResultDirectory(out);
  const DirectoryLock lock = LockDirectory(out);
  for (const auto& folder : {out, out / kJournalFolder}) SweepTemporaries(folder);
  ClaimDirectory(task.experiment, task.options.settings, out);
  // Before the journals are read, so that only this process adds trials of the shard to them.
  OwnShard own;
  own.owner = std::make_unique<ShardOwner>(
      out, task.options.shard_index, task.options.shard_count, task.options.take_over);
  FinishedTrials finished;
  AddFinishedTrials(task.experiment, task.trials, out, finished);
  SettleEarlierTrials(task, finished);
  for (const size_t i : task.shard) {
    if (!finished.contains(i)) task.todo.push_back(i);
  }
  const auto is_dearer = [&](size_t a, size_t b) {
    return task.trials[a].cost > task.trials[b].cost;
  };
  std::stable_sort(task.todo.begin(), task.todo.end(), is_dearer);
  if (task.todo.empty()) return own;
  own.journal = std::make_unique<Journal>(
      out / kJournalFolder / JournalName(task.options.shard_index, task.options.shard_count));
  // Outputs may be left over where somebody removed the journals; they must not look like the
  // results of this run.
  RemoveOutputs(task.experiment, out);
  return own;
}

// Returns the processor and the backend, as trials record them.
const std::string& ProcessorText() {
  static const std::string text = fmt::format("{}, {}", DescribeHost().cpu, SimdTargetName());
  return text;
}

// Measures one trial and appends it to the journal. Throws Error naming the trial.
void Measure(const Task& task, size_t index, Journal& journal) {
  const Trial& trial = task.trials[index];
  Rows rows;
  try {
    rows = task.experiment.run(task.options.settings, trial);
  } catch (const Error& error) {
    throw Error::Format("{}, trial \"{}\": {} (finished trials are kept; --resume continues)",
                        task.experiment.name,
                        trial.label,
                        error.what());
  }
  CheckRows(task.experiment, trial, rows);
  journal.Append({index,
                  trial.label,
                  std::string(BuildCommit()),
                  std::move(rows),
                  fmt::format("{} {}", BuildCompiler(), BuildType()),
                  ProcessorText()});
}

double CostOf(const Task& task, const std::vector<size_t>& trials) {
  double cost = 0;
  for (const size_t i : trials) cost += task.trials[i].cost;
  return cost;
}

bool IsInterrupted(const Task& task) {
  return task.options.interrupted != nullptr && task.options.interrupted->load();
}

// Measures the unfinished trials and returns how many it measured: all unless interrupted.
size_t MeasureAll(const Task& task, Journal& journal) {
  const size_t done = task.shard.size() - task.todo.size();
  Progress progress(task.options.progress, done, task.shard.size());
  const double work = CostOf(task, task.shard);
  progress.BeginWith(task.options.progress_head, CostOf(task, task.todo) / work);
  std::atomic<bool> failed = false;  // no further trial begins
  std::atomic<size_t> measured = 0;
  const auto measure = [&](size_t i) {
    if (failed || IsInterrupted(task)) return;
    const Trial& trial = task.trials[task.todo[i]];
    try {
      progress.Started(trial.label);
      Measure(task, task.todo[i], journal);
      progress.Finished(trial.label, trial.cost / work);
      ++measured;
    } catch (...) {
      failed = true;
      throw;
    }
  };
  if (task.experiment.exclusive || task.experiment.timed) {
    for (size_t i = 0; i < task.todo.size(); ++i) measure(i);
  } else {
    ParallelTasks(task.todo.size(), measure);
  }
  return measured;
}

}  // namespace

namespace {

// Measures the trials of one look and, if no other shard has trials left, writes its results.
RunReport RunLook(Task task, const Command& command) {
  RunReport report;
  if (const OwnShard own = Start(task); own.journal) {
    report.trials_run = MeasureAll(task, *own.journal);
  }

  // Read the journals again: other shards may have finished trials meanwhile.
  const std::filesystem::path& out = task.options.out;
  const DirectoryLock lock = LockDirectory(out);
  FinishedTrials finished;
  AddFinishedTrials(task.experiment, task.trials, out, finished);
  std::erase_if(finished,
                [&](const auto& entry) { return !IsOfLook(task.trials[entry.first], task.look); });
  report.trials_total = static_cast<size_t>(
      std::count_if(task.trials.begin(), task.trials.end(), [&](const Trial& trial) {
        return IsOfLook(trial, task.look);
      }));
  report.trials_missing = report.trials_total - finished.size();
  report.interrupted = IsInterrupted(task);
  if (report.trials_missing == 0 && !report.interrupted) {
    SyncJournals(out);
    Complete(task.experiment, task.look, finished, out, command, report);
  }
  return report;
}

}  // namespace

RunReport Run(const Experiment& experiment, const RunOptions& options) {
  const Command command{.arguments = options.command};
  CheckShard(options);
  const std::vector<Trial> trials = ListTrials(experiment, WithAllSeeds(options.settings));
  RunReport report;
  size_t trials_run = 0;
  bool resume = options.resume;
  const std::vector<int> looks = LooksOf(options.settings);
  for (const int seeds : looks) {
    Settings look = options.settings;
    look.seeds = seeds;
    look.looks = static_cast<int>(looks.size());
    report = RunLook(
        {experiment, options, trials, look, resume, ShardTrials(trials, look, options)}, command);
    trials_run += report.trials_run;
    resume = true;  // the next look adds to this one
    if (report.interrupted || AllDecided(report.judged)) break;
  }
  report.trials_run = trials_run;
  return report;
}

}  // namespace numsim::experiments
