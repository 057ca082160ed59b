#include "experiments/sweep/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "experiments/core/claim.h"
#include "experiments/core/completion.h"
#include "experiments/core/exit_code.h"
#include "experiments/core/journal.h"
#include "experiments/core/looks.h"
#include "experiments/core/result_directory.h"
#include "experiments/core/settings.h"
#include "numsim/base/error.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"

namespace numsim::experiments::sweep {
namespace {

// Reads the exit code that task.sh wrote; none if there is no such file.
std::optional<int> ReadExitCode(const std::filesystem::path& path) {
  if (!Exists(path)) return std::nullopt;
  const std::string text = numsim::ReadText(path);
  int code = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (status != std::errc() || std::string_view(end) != "\n" || code < 0 || code > 255) {
    throw Error::Format("{}: expected an exit code from 0 to 255, found '{}'", path.string(), text);
  }
  return code;
}

// Returns the number of finished trials of a task. Throws Error if the journal holds others.
size_t CountFinished(const Plan& plan, size_t task, const std::filesystem::path& journal) {
  std::set<size_t> finished;
  for (const FinishedTrial& trial : ReadJournal(journal)) {
    if (trial.trial >= plan.trials || trial.trial % plan.tasks != task) {
      throw Error::Format("{}: holds trial {}, which is not of task {} of {} with {} trials",
                          journal.string(),
                          trial.trial,
                          task,
                          plan.tasks,
                          plan.trials);
    }
    finished.insert(trial.trial);
  }
  return finished.size();
}

// The trials of a sweep with rounds that are finished.
struct RoundTrials {
  std::vector<Look> looks;
  std::vector<std::set<size_t>> finished;  // per task

  // Returns the trials of a round that belong to a task, as `numsim run --look` shares them out.
  std::vector<size_t> Of(const Plan& plan, size_t round, size_t task) const {
    const std::vector<size_t>& added = looks[round - 1].added;
    std::vector<size_t> trials;
    for (size_t i = task; i < added.size(); i += plan.tasks) trials.push_back(added[i]);
    return trials;
  }
  size_t CountFinished(const Plan& plan, size_t round, size_t task) const {
    const std::vector<size_t> trials = Of(plan, round, task);
    return static_cast<size_t>(std::count_if(
        trials.begin(), trials.end(), [&](size_t i) { return finished[task].contains(i); }));
  }
  size_t CountFinished(const Plan& plan, size_t round) const {
    size_t count = 0;
    for (size_t task = 0; task < plan.tasks; ++task) count += CountFinished(plan, round, task);
    return count;
  }
};

std::filesystem::path ShardOf(const std::filesystem::path& directory, size_t task) {
  return directory / kShards / std::to_string(task);
}

std::filesystem::path JournalOf(const Plan& plan,
                                const std::filesystem::path& directory,
                                size_t task) {
  return ShardOf(directory, task) / kJournalFolder /
         JournalName(static_cast<int>(task), static_cast<int>(plan.tasks));
}

// Returns the looks of the sweep; without trials as long as no task has begun.
std::vector<Look> LooksOfSweep(const Experiment& experiment,
                               const Plan& plan,
                               const std::filesystem::path& directory) {
  for (size_t task = 0; task < plan.tasks; ++task) {
    const std::filesystem::path path = ShardOf(directory, task) / kSettingsFile;
    if (!Exists(path)) continue;
    const Settings settings = ReadSettingsOf(experiment, path).settings;
    std::vector<Look> looks = ListLooks(settings, ListTrials(experiment, WithAllSeeds(settings)));
    const auto fits = [](const Look& look, size_t trials) { return look.added.size() == trials; };
    if (std::equal(looks.begin(), looks.end(), plan.rounds.begin(), plan.rounds.end(), fits)) {
      return looks;
    }
    throw Error::Format("{}: are settings of another sweep than {}",
                        path.string(),
                        (directory / kFolder / kPlanFile).string());
  }
  return std::vector<Look>(plan.rounds.size());
}

RoundTrials ReadRoundTrials(const Experiment& experiment,
                            const Plan& plan,
                            const std::filesystem::path& directory) {
  RoundTrials trials{LooksOfSweep(experiment, plan, directory), {}};
  for (size_t task = 0; task < plan.tasks; ++task) {
    std::set<size_t>& finished = trials.finished.emplace_back();
    const std::filesystem::path journal = JournalOf(plan, directory, task);
    for (const FinishedTrial& trial : ReadJournal(journal)) finished.insert(trial.trial);
    size_t own = 0;
    for (size_t round = 1; round <= plan.rounds.size(); ++round) {
      own += trials.CountFinished(plan, round, task);
    }
    if (own == finished.size()) continue;
    throw Error::Format("{}: holds trials that are not of task {}", journal.string(), task);
  }
  return trials;
}

// Returns the number of looks that the results in DIR stand on; 0 if there are none.
size_t LooksJudged(const std::vector<Look>& looks, const std::filesystem::path& directory) {
  if (!Exists(directory / kManifestFile)) return 0;
  const int seeds = SeedsOfResults(directory);
  for (size_t i = 0; i < looks.size(); ++i) {
    if (looks[i].settings.seeds == seeds) return i + 1;
  }
  throw Error::Format("{}: has results of {} seeds, which is no look of this sweep",
                      (directory / kManifestFile).string(),
                      seeds);
}

// Returns the primary claims that the results leave undecided, as AllDecided sees them.
std::vector<std::string> UndecidedClaims(const std::filesystem::path& directory) {
  if (!Exists(directory / kVerdictsFile)) return {};  // an experiment without claims
  const Table verdicts = ReadCsv(directory / kVerdictsFile);
  std::vector<std::string> claims;
  for (size_t row = 0; row < verdicts.rows.size(); ++row) {
    const std::string claim = verdicts.Text(row, "claim");
    if (verdicts.Text(row, "primary") != "yes" ||
        verdicts.Text(row, "verdict") != ToString(Verdict::kInconclusive) ||
        (!claims.empty() && claims.back() == claim)) {
      continue;
    }
    claims.push_back(claim);
  }
  return claims;
}

// Returns the round to run or to judge next.
size_t CurrentRound(const Plan& plan, const RoundTrials& trials, size_t judged) {
  if (judged > 0) return judged + 1;
  // A stop within the look has left no results: the look is repeated, unless its successor has begun.
  size_t round = 1;
  while (round < plan.rounds.size() && trials.CountFinished(plan, round + 1) > 0) ++round;
  return round;
}

}  // namespace

std::string TaskStatus::Text() const {
  if (Done()) return "finished";
  if (!exit_code) return started ? "running, or killed" : "not started";
  if (*exit_code == kStoppedBySignal) return "stopped by a signal";
  if (*exit_code > 128) return fmt::format("ended by signal {}", *exit_code - 128);
  return fmt::format("failed with exit code {}", *exit_code);
}

std::vector<TaskStatus> ReadStatus(const Plan& plan, const std::filesystem::path& directory) {
  std::vector<TaskStatus> tasks;
  for (size_t i = 0; i < plan.tasks; ++i) {
    const std::string number = std::to_string(i);
    tasks.push_back({.trials = TrialsOfTask(plan, i),
                     .finished = CountFinished(plan, i, JournalOf(plan, directory, i)),
                     .started = Exists(ShardOf(directory, i)),
                     .exit_code = ReadExitCode(directory / kFolder / kExitCodes / number)});
  }
  return tasks;
}

RoundStatus ReadRoundStatus(const Experiment& experiment,
                            const Plan& plan,
                            const std::filesystem::path& directory) {
  const RoundTrials trials = ReadRoundTrials(experiment, plan, directory);
  RoundStatus status;
  status.judged = LooksJudged(trials.looks, directory);
  if (status.judged > 0) status.undecided = UndecidedClaims(directory);
  status.ended =
      status.judged > 0 && (status.undecided.empty() || status.judged == plan.rounds.size());
  status.round = status.ended ? status.judged : CurrentRound(plan, trials, status.judged);
  const std::filesystem::path sweep = directory / kFolder;
  for (size_t i = 0; i < TasksOfRound(plan, status.round); ++i) {
    const std::string name = fmt::format("{}-{}", status.round, i);
    status.tasks.push_back({.trials = TrialsOfTask(plan, i, status.round),
                            .finished = trials.CountFinished(plan, status.round, i),
                            .started = Exists(sweep / kLogs / (name + ".log")),
                            .exit_code = ReadExitCode(sweep / kExitCodes / name)});
  }
  return status;
}

std::vector<size_t> UnfinishedTasks(const std::vector<TaskStatus>& tasks) {
  std::vector<size_t> unfinished;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i].Done()) unfinished.push_back(i);
  }
  return unfinished;
}

}  // namespace numsim::experiments::sweep
