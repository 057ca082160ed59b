// The plan of a sweep: one experiment, cut into tasks that an engine (Slurm, GNU parallel, mpirun or
// this machine) runs. A task is a shard of `numsim run`, with a result directory of its own:
//   DIR/sweep/plan.json  the plan
//   DIR/sweep/settings.json          its settings, as in a result directory
//   DIR/sweep/costs.csv  --costs: the costs by which trials are shared out (trial_costs.h)
//   DIR/sweep/launch.sh, task.sh, merge.sh   what the engine runs (scripts.h); mpi: also rank.sh
//   DIR/sweep/logs/I.log, exit/I   output and last exit code of task I
//   DIR/sweep/tasks, taken/I         mpi: the tasks to run; which rank took task I
//   DIR/sweep/lock       held while tasks run here (sweep_lock.h)
//   DIR/shards/I         the result directory of task I
//   DIR                  the merged results
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace numsim::experiments::sweep {

inline constexpr std::string_view kFolder = "sweep";        // in the directory of a sweep
inline constexpr std::string_view kPlanFile = "plan.json";  // these four in that folder
inline constexpr std::string_view kCostsFile = "costs.csv";
inline constexpr std::string_view kLogs = "logs";
inline constexpr std::string_view kExitCodes = "exit";
inline constexpr std::string_view kJobFile = "job";    // slurm: the numbers of the jobs; also there
inline constexpr std::string_view kShards = "shards";  // in the directory of a sweep

// Names of the engines, as options and in the plan.
inline constexpr std::string_view kSlurm = "slurm";
inline constexpr std::string_view kParallel = "parallel";
inline constexpr std::string_view kMpi = "mpi";
inline constexpr std::string_view kLocal = "local";

struct Plan {
  std::string engine;      // one of the four names
  std::string experiment;  // its name
  std::vector<std::string>
      arguments;      // of `numsim run EXPERIMENT`, without --out, --shard, --resume
  size_t trials = 1;  // of the experiment with these arguments
  // --until-decided: the number of trials that each look adds, `trials` in all; otherwise empty. A round
  // runs them as tasks; then a look judges, and starts the next round if the claims are undecided.
  std::vector<size_t> rounds = {};
  size_t tasks = 1;    // from 1 to the trials of the largest round, so that no task is empty
  std::string costs;   // SHA-256 of costs.csv; empty: costs are those of the experiment
  size_t at_once = 1;  // local: processes at a time; mpi: ranks; others: 1
  std::string hosts;   // parallel: the value of --sshlogin; others: empty
  std::map<std::string, std::string> resources;  // slurm: options of sbatch without dashes
  std::string
      wrapper;  // words of bash before numsim in tasks and merge, e.g. of a container; or empty
  std::string program;    // absolute path of numsim
  std::string directory;  // absolute path where tasks start: that of the caller's relative paths

  bool operator==(const Plan&) const = default;
};

// Returns the number of tasks of a round that have trials. Rounds are counted from 1; without any it
// is 1.
size_t TasksOfRound(const Plan& plan, size_t round);

// Throws Error naming the field if the plan breaks what is said above, or cannot be put in scripts.
void CheckPlan(const Plan& plan);

// Writes DIR/sweep/plan.json. Throws Error when it cannot be written.
void WritePlan(const Plan& plan, const std::filesystem::path& directory);

// Reads the plan of a sweep. Throws Error naming file, field and what was expected.
Plan ReadPlan(const std::filesystem::path& directory);

}  // namespace numsim::experiments::sweep
