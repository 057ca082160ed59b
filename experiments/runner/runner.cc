#include "experiments/runner/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "experiments/runner/completion.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/looks.h"
#include "experiments/runner/merge_check.h"
#include "experiments/runner/progress.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/seeds.h"
#include "experiments/runner/shard_owner.h"
#include "experiments/runner/trial_context.h"
#include "experiments/runner/trial_costs.h"
#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {
namespace {

// The trials of a run up to one look, and those that it still has to do.
struct Task {
  const Experiment& experiment;
  const RunOptions& options;
  const std::vector<Trial>& trials;  // of all looks
  const Look& look;
  std::vector<size_t> all;           // numbers of the trials up to this look
  std::vector<size_t> shard;         // those of them that are this shard's
  bool resume;                       // keep finished trials
  std::vector<size_t> todo = {};     // numbers of its unfinished trials, expensive ones first
  std::string settings_digest = {};  // of the directory's settings, for checkpoints
};

void CheckShard(const RunOptions& options, size_t looks) {
  if (options.shard_count < 1 || options.shard_index < 0 ||
      options.shard_index >= options.shard_count) {
    throw Error::Format(
        "--shard {}/{}: expected I/N with 0 <= I < N", options.shard_index, options.shard_count);
  }
  if (options.look > looks) {
    throw Error::Format("--look {}: expected a look from 1 to {}", options.look, looks);
  }
  if (looks > 1 && options.shard_count != 1 && options.look == 0) {
    throw Error::Format(
        "--shard {}/{}: with --until-decided, --look says up to which look it runs its trials, since "
        "the results of all shards decide whether there is a next one; `numsim sweep` does this",
        options.shard_index,
        options.shard_count);
  }
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
  RemoveCheckpoints(out / kJournalFolder, [](size_t) { return true; });
  RemoveForkFiles(out / kJournalFolder);
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
  task.settings_digest = Sha256OfText(ReadText(out / kSettingsFile));
  // Before the journals are read, so that only this process adds trials of the shard to them.
  OwnShard own;
  own.owner = std::make_unique<ShardOwner>(
      out, task.options.shard_index, task.options.shard_count, task.options.take_over);
  FinishedTrials finished;
  AddFinishedTrials(task.experiment, task.trials, out, finished);
  SettleEarlierTrials(task, finished);
  // A kill may have come between the end of a trial and the removal of its checkpoints.
  RemoveCheckpoints(out / kJournalFolder, [&](size_t trial) { return finished.contains(trial); });
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
  static const std::string text = fmt::format("{}, {}", DescribeHost().cpu, BackendName());
  return text;
}

bool IsInterrupted(const Task& task) {
  return task.options.interrupted != nullptr && task.options.interrupted->load();
}

// Returns the compiler and the build type, as trials record them.
std::string BuildText() { return fmt::format("{} {}", BuildCompiler(), BuildType()); }

// Returns what a trial gets to survive a stop. `task` must outlive it.
TrialContext ContextOf(const Task& task, size_t index) {
  TrialContext context{.folder = task.options.out / kJournalFolder,
                       .trial = index,
                       .identity = {{"experiment", task.experiment.name},
                                    {"settings", task.settings_digest},
                                    {kTrialIdentity, task.trials[index].label},
                                    {"commit", std::string(BuildCommit())},
                                    {"build", BuildText()}},
                       .save_every = task.options.save_every,
                       .stop = [&task] { return IsInterrupted(task); },
                       .say = task.options.say ? task.options.say : [](const std::string&) {}};
  if (DependsOnProcessor(task.experiment, task.options.settings)) {
    context.identity.emplace_back("processor", ProcessorText());
  }
  return context;
}

// Runs one trial. Returns nothing if it stopped. Throws Error naming the trial.
std::optional<Rows> RunTrial(const Task& task, size_t index) {
  TrialContext context = ContextOf(task, index);
  Trial trial = task.trials[index];
  trial.context = &context;
  try {
    try {
      return task.experiment.run(task.options.settings, trial);
    } catch (const TrialRestarts&) {
      context.restore = false;
      return task.experiment.run(task.options.settings, trial);
    }
  } catch (const TrialStopped&) {
    return std::nullopt;
  } catch (const Error& error) {
    throw Error::Format("{}, trial \"{}\": {} (finished trials are kept; --resume continues)",
                        task.experiment.name,
                        trial.label,
                        error.what());
  }
}

// Measures one trial and appends it to the journal. Returns false if it stopped, having saved a
// checkpoint. Throws Error naming the trial.
bool Measure(const Task& task, size_t index, Journal& journal) {
  const Stopwatch watch;
  std::optional<Rows> rows = RunTrial(task, index);
  if (!rows) return false;
  const double seconds = std::ceil(1e6 * watch.Seconds()) / 1e6;
  const Trial& trial = task.trials[index];
  CheckRows(task.experiment, trial, *rows);
  journal.Append({index,
                  trial.label,
                  std::string(BuildCommit()),
                  std::move(*rows),
                  BuildText(),
                  ProcessorText(),
                  seconds,
                  task.experiment.file.claims});
  RemoveCheckpoints(task.options.out / kJournalFolder, [=](size_t t) { return t == index; });
  return true;
}

double CostOf(const Task& task, const std::vector<size_t>& trials) {
  double cost = 0;
  for (const size_t i : trials) cost += task.trials[i].cost;
  return cost;
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
      if (!Measure(task, task.todo[i], journal)) return;
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
  KeepOnly(task.all, finished);
  report.trials_total = task.all.size();
  report.trials_missing = report.trials_total - finished.size();
  report.shard_total = task.shard.size();
  report.shard_missing =
      static_cast<size_t>(std::count_if(task.shard.begin(), task.shard.end(), [&](size_t trial) {
        return !finished.contains(trial);
      }));
  report.interrupted = IsInterrupted(task);
  if (report.trials_missing == 0 && !report.interrupted) {
    SyncJournals(out);
    RemoveForkFiles(out / kJournalFolder);  // no trial is left to go on from them
    if (task.options.measure_only) return report;
    Complete(task.experiment, task.look.settings, std::move(finished), out, command, report);
  }
  return report;
}

}  // namespace

RunReport Run(const Experiment& experiment, const RunOptions& options) {
  if (!options.measure_only) CheckJudgingSeeds(options.settings);
  const Command command{.arguments = options.command};
  std::vector<Trial> trials = ListTrials(experiment, WithAllSeeds(options.settings));
  if (!options.trial_costs.empty()) ReadTrialCosts(options.trial_costs, trials);
  const std::vector<Look> looks = ListLooks(options.settings, trials);
  CheckShard(options, looks.size());
  RunReport report;
  size_t trials_run = 0;
  bool resume = options.resume;
  // With RunOptions::look others judge: this run has trials up to that look and no further ones.
  const size_t first = options.look == 0 ? 1 : options.look;
  const size_t last = options.look == 0 ? looks.size() : options.look;
  for (size_t count = first; count <= last; ++count) {
    report = RunLook({experiment,
                      options,
                      trials,
                      looks[count - 1],
                      TrialsUpTo(looks, count),
                      ShardTrialsUpTo(looks,
                                      trials,
                                      count,
                                      static_cast<size_t>(options.shard_index),
                                      static_cast<size_t>(options.shard_count)),
                      resume},
                     command);
    trials_run += report.trials_run;
    resume = true;  // the next look adds to this one
    if (report.interrupted || AllDecided(report.judged)) break;
  }
  report.trials_run = trials_run;
  return report;
}

}  // namespace numsim::experiments
