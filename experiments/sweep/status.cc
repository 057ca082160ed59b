#include "experiments/sweep/status.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "experiments/core/exit_code.h"
#include "experiments/core/journal.h"
#include "experiments/core/result_directory.h"
#include "numsim/base/error.h"
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
    const std::filesystem::path shard = directory / kShards / number;
    const std::string journal = JournalName(static_cast<int>(i), static_cast<int>(plan.tasks));
    tasks.push_back({.trials = TrialsOfTask(plan, i),
                     .finished = CountFinished(plan, i, shard / kJournalFolder / journal),
                     .started = Exists(shard),
                     .exit_code = ReadExitCode(directory / kFolder / kExitCodes / number)});
  }
  return tasks;
}

std::vector<size_t> UnfinishedTasks(const std::vector<TaskStatus>& tasks) {
  std::vector<size_t> unfinished;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i].Done()) unfinished.push_back(i);
  }
  return unfinished;
}

}  // namespace numsim::experiments::sweep
