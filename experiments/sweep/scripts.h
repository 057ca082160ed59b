// The bash scripts of a sweep. They are written to be read, changed and run by hand.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "experiments/runner/experiment.h"
#include "experiments/sweep/plan.h"
#include "experiments/sweep/sweep_lock.h"

namespace numsim::experiments::sweep {

inline constexpr std::string_view kLaunchScript = "launch.sh";
inline constexpr std::string_view kTaskScript = "task.sh";
inline constexpr std::string_view kRankScript = "rank.sh";  // mpi
inline constexpr std::string_view kMergeScript = "merge.sh";

// Returns the text as one word of bash, quoted only if it must be.
std::string Quoted(std::string_view text);

// In a sweep with rounds, each of the scripts below has one more argument, the round: task.sh I ROUND,
// rank.sh ROUND, merge.sh ROUND, and launch.sh ROUND, launch.sh ROUND I... or launch.sh ROUND --from
// FILE.

// task.sh I runs the trials of task I and leaves its exit code; as an array job of Slurm it takes the
// number from there. `directory` is the absolute path of the sweep, here and below.
std::string TaskScript(const Plan& plan, const std::filesystem::path& directory);

// rank.sh is what each rank of mpirun runs: it takes tasks of the list sweep/tasks that no other rank
// has taken, in that order, until none is left. A task is taken by creating sweep/taken/I exclusively.
std::string RankScript(const Plan& plan, const std::filesystem::path& directory);

// merge.sh combines the shards into the results. With rounds it is their look, and starts the next round
// if the claims are undecided.
std::string MergeScript(const Plan& plan, const std::filesystem::path& directory);

// launch.sh I... has the engine run these tasks, launch.sh --from FILE those of a file with a number
// per line (for more than arguments can hold), launch.sh all of them; and then the merge; with rounds,
// the first round and those after it. It ends with 2 if a task failed or a program of the engine is
// missing.
std::string LaunchScript(const Plan& plan, const std::filesystem::path& directory);

// Writes plan, scripts, settings, and costs.csv if `costs`, its text, is not empty. If DIR already
// holds this plan, nothing changes. A plan whose tasks have not begun, nor been given to Slurm, is
// replaced. Throws Error when DIR holds tasks of another plan, when Slurm cannot take its path, when
// another process starts or runs a sweep there, or when a file cannot be written. Returns the lock of
// the sweep. If this process then becomes launch.sh (SweepLock::PassOn), launch.sh keeps the lock, so
// that no other sweep can start in between.
SweepLock WriteSweep(const Plan& plan,
                     const Settings& settings,
                     const std::string& costs,
                     const std::filesystem::path& directory);

}  // namespace numsim::experiments::sweep
