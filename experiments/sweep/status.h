// How far the tasks of a sweep are, read from their journals and exit codes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/plan.h"

namespace numsim::experiments::sweep {

struct TaskStatus {
  size_t trials = 0;             // of this task
  size_t finished = 0;           // of them
  bool started = false;          // its result directory exists
  std::optional<int> exit_code;  // of its last run; none while it runs or if it was killed

  bool Done() const { return finished == trials; }
  // Returns the state in words: "finished", "not started", "failed with exit code 2", ...
  std::string Text() const;
};

// Returns the status of every task. Throws Error naming a journal or a file that is corrupt.
std::vector<TaskStatus> ReadStatus(const Plan& plan, const std::filesystem::path& directory);

// Returns the numbers of the tasks with unfinished trials.
std::vector<size_t> UnfinishedTasks(const std::vector<TaskStatus>& tasks);

}  // namespace numsim::experiments::sweep
