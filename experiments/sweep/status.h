// How far the tasks of a sweep are, read from their journals and exit codes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/sweep/plan.h"

namespace numsim::experiments::sweep {

struct TaskStatus {
  size_t trials = 0;             // of this task
  size_t finished = 0;           // of them
  bool started = false;          // it has a log
  std::optional<int> exit_code;  // of its last run; none while it runs or if it was killed

  bool Done() const { return finished == trials; }
  // Returns the state in words: "finished", "not started", "failed with exit code 2", ...
  std::string Text() const;
};

// How far a sweep is. One without rounds counts as one round.
struct SweepStatus {
  size_t round = 1;    // the one to run or to judge next, or the last if the sweep has ended
  size_t judged = 0;   // looks that the results in DIR stand on; 0: no results
  bool ended = false;  // all tasks are finished, and the results decide or there is no further look
  std::vector<TaskStatus> tasks;       // of the round
  std::vector<std::string> undecided;  // primary claims that the results leave undecided

  size_t Finished() const;  // trials of these tasks
};

// Returns the status of a sweep. Throws Error naming a file that is corrupt or belongs to another
// sweep, also if the results in DIR are not those of a look.
SweepStatus ReadStatus(const Experiment& experiment,
                       const Plan& plan,
                       const std::filesystem::path& directory);

// Returns the numbers of the tasks with unfinished trials.
std::vector<size_t> UnfinishedTasks(const std::vector<TaskStatus>& tasks);

}  // namespace numsim::experiments::sweep
