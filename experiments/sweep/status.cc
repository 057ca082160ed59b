#include "experiments/sweep/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "experiments/claims/claim.h"
#include "experiments/runner/completion.h"
#include "experiments/runner/exit_code.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/looks.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/trial_costs.h"
#include "numsim/base/error.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"

namespace numsim::experiments::sweep {
namespace {

namespace fs = std::filesystem;

// Reads the exit code that task.sh wrote; none if the file is missing, empty or torn, as after a full
// disk. The journals alone say which trials are finished, so such a file is in nobody's way.
std::optional<int> ReadExitCode(const fs::path& path) {
  if (!Exists(path)) return std::nullopt;
  const std::string text = numsim::ReadText(path);
  int code = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), code);
  const bool whole = std::string_view(end, text.data() + text.size()) == "\n";
  if (status != std::errc() || !whole || code < 0 || code > 255) return std::nullopt;
  return code;
}

// The round and the task that run a trial.
struct Place {
  size_t round = 0;  // from 0
  size_t task = 0;
};

// The work of each round and task, and how much of it is finished.
struct Work {
  std::vector<Look> looks;
  std::vector<Place> places;                  // of every trial
  std::vector<std::vector<size_t>> trials;    // their number, per round (from 0) and task
  std::vector<std::vector<size_t>> finished;  // of them

  bool HasBegun(size_t round) const {
    const auto is_finished = [](size_t count) { return count > 0; };
    return std::any_of(finished[round].begin(), finished[round].end(), is_finished);
  }
};

// Throws Error if the settings do not give the trials of the plan.
void CheckLooks(const std::vector<Look>& looks, const Plan& plan, const fs::path& sweep) {
  const std::vector<size_t> rounds =
      plan.rounds.empty() ? std::vector<size_t>{plan.trials} : plan.rounds;
  const auto fits = [](const Look& look, size_t trials) { return look.added.size() == trials; };
  if (std::equal(looks.begin(), looks.end(), rounds.begin(), rounds.end(), fits)) return;
  throw Error::Format("{}: are settings of another sweep than {}",
                      (sweep / kSettingsFile).string(),
                      (sweep / kPlanFile).string());
}

// Returns the work of a sweep of which nothing is finished.
Work ListWork(const Experiment& experiment, const Plan& plan, const fs::path& sweep) {
  const Settings settings = ReadSettingsOf(experiment, sweep / kSettingsFile).settings;
  std::vector<Trial> trials = ListTrials(experiment, WithAllSeeds(settings));
  if (!plan.costs.empty()) ReadTrialCosts(sweep / kCostsFile, trials);
  Work work;
  work.looks = ListLooks(settings, trials);
  CheckLooks(work.looks, plan, sweep);
  work.places.resize(trials.size());
  work.trials.resize(work.looks.size(), std::vector<size_t>(plan.tasks));
  work.finished = work.trials;
  for (size_t round = 0; round < work.looks.size(); ++round) {
    const std::vector<std::vector<size_t>> shares = ShareOut(work.looks[round], trials, plan.tasks);
    for (size_t task = 0; task < plan.tasks; ++task) {
      work.trials[round][task] = shares[task].size();
      for (const size_t i : shares[task]) work.places[i] = {round, task};
    }
  }
  return work;
}

// Counts the finished trials of one task. Throws Error if its journal holds others.
void CountFinished(const fs::path& journal, size_t task, Work& work) {
  std::set<size_t> seen;
  for (const FinishedTrial& finished : ReadJournal(journal)) {
    const size_t trial = finished.trial;
    if (trial >= work.places.size() || work.places[trial].task != task) {
      throw Error::Format(
          "{}: holds trial {}, which is not of task {}", journal.string(), trial, task);
    }
    if (seen.insert(trial).second) ++work.finished[work.places[trial].round][task];
  }
}

Work ReadWork(const Experiment& experiment, const Plan& plan, const fs::path& directory) {
  Work work = ListWork(experiment, plan, directory / kFolder);
  for (size_t task = 0; task < plan.tasks; ++task) {
    CountFinished(directory / kShards / std::to_string(task) / kJournalFolder /
                      JournalName(static_cast<int>(task), static_cast<int>(plan.tasks)),
                  task,
                  work);
  }
  return work;
}

// Returns the number of looks that the results in DIR stand on; 0 if there are none.
size_t LooksJudged(const std::vector<Look>& looks, const fs::path& directory) {
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
std::vector<std::string> UndecidedClaims(const fs::path& directory) {
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
size_t CurrentRound(const Work& work, size_t judged) {
  if (judged > 0) return std::min(judged + 1, work.looks.size());
  // A stop within the look has left no results: the look is repeated, unless its successor has begun.
  size_t round = 1;
  while (round < work.looks.size() && work.HasBegun(round)) ++round;
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

size_t SweepStatus::Finished() const {
  size_t finished = 0;
  for (const TaskStatus& task : tasks) finished += task.finished;
  return finished;
}

SweepStatus ReadStatus(const Experiment& experiment, const Plan& plan, const fs::path& directory) {
  const Work work = ReadWork(experiment, plan, directory);
  SweepStatus status;
  status.judged = LooksJudged(work.looks, directory);
  if (status.judged > 0) status.undecided = UndecidedClaims(directory);
  const bool last =
      status.judged > 0 && (status.undecided.empty() || status.judged == work.looks.size());
  status.round = last ? status.judged : CurrentRound(work, status.judged);
  const fs::path sweep = directory / kFolder;
  for (size_t i = 0; i < TasksOfRound(plan, status.round); ++i) {
    const std::string name =
        plan.rounds.empty() ? std::to_string(i) : fmt::format("{}-{}", status.round, i);
    status.tasks.push_back({.trials = work.trials[status.round - 1][i],
                            .finished = work.finished[status.round - 1][i],
                            .started = Exists(sweep / kLogs / (name + ".log")),
                            .exit_code = ReadExitCode(sweep / kExitCodes / name)});
  }
  status.ended = last && UnfinishedTasks(status.tasks).empty();
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
