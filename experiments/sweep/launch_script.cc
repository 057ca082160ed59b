// launch.sh, and rank.sh of mpirun: how each engine runs the tasks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "experiments/sweep/scripts.h"

namespace numsim::experiments::sweep {
namespace {

namespace fs = std::filesystem;

// Refuses to start while tasks of an earlier call run: they hold the lock, which they inherit. `numsim
// sweep` passes the lock on as file 9 (sweep_lock.h).
constexpr const char* kLock = R"sh([ /proc/self/fd/9 -ef "$sweep/lock" ] || exec 9>"$sweep/lock"
if ! flock --nonblock 9; then
  echo "$sweep: tasks of this sweep are still running" >&2
  exit 2
fi
)sh";

// Lines about the finished trials while the tasks run, and how to go on after Ctrl-C. The pause grows
// from 2 to 60 seconds; to read from a pipe that nobody writes to takes no process, which would
// outlive this one. The lock belongs to the tasks.
constexpr const char* kProgress =
    R"sh(stopped() {
  echo "interrupted; finished trials are kept; to resume: numsim sweep resume ${sweep%/sweep}" >&2
  exit "$1"
}
trap 'stopped 130' INT
trap 'stopped 143' TERM
progress() {
  local finished last=0 pause=2 never
  trap - ERR INT TERM
  exec {never}<> <(:)
  while kill -0 $$ 2>/dev/null; do
    read -r -t "$pause" -u "$never" || true
    finished=$(find @SHARDS@ -path '*/journal/*.jsonl' -exec cat {} + 2>/dev/null | wc -l) || true
    [ "$finished" = "$last" ] || echo "$finished of @TRIALS@ trials are finished" >&2
    last=$finished
    pause=$((pause < 30 ? 2 * pause : 60))
  done
}
progress 9>&- &
watcher=$!
trap 'kill "$watcher" 2>/dev/null || true' EXIT
)sh";

// The look of a round is a job of its own, which submits the next round: it is not in its own way.
constexpr const char* kSlurmLaunchRound =
    R"sh(left=
[ ! -e "$sweep/job" ] || left=$(squeue --noheader --format=%A --jobs="$(cat "$sweep/job")" 2>/dev/null |
  grep -vx "${SLURM_JOB_ID:-none}" || true)
if [ -n "$left" ]; then
  echo "$sweep: tasks of this sweep are still queued or running: job $(cat "$sweep/job")" >&2
  exit 2
fi
@ARRAY@job=$(sbatch --parsable --array="$array" --output="$sweep/logs/$round-%a.log" "$sweep/task.sh" "" "$round")
echo "${job%%;*}" >"$sweep/job"
look=$(sbatch --parsable --dependency="afterok:${job%%;*}" --kill-on-invalid-dep=yes "$sweep/merge.sh" "$round")
echo "${job%%;*},${look%%;*}" >"$sweep/job"
echo "submitted the tasks of round $round as job ${job%%;*} and the look as job ${look%%;*}"
)sh";

constexpr const char* kSlurmLaunch =
    R"sh(if [ -e "$sweep/job" ] && [ -n "$(squeue --noheader --jobs="$(cat "$sweep/job")" 2>/dev/null)" ]; then
  echo "$sweep: tasks of this sweep are still queued or running: job $(cat "$sweep/job")" >&2
  exit 2
fi
@ARRAY@job=$(sbatch --parsable --array="$array" "$sweep/task.sh")
echo "${job%%;*}" >"$sweep/job"
merge=$(sbatch --parsable --dependency="afterok:${job%%;*}" --kill-on-invalid-dep=yes "$sweep/merge.sh")
echo "submitted the tasks as job ${job%%;*} and the merge as job ${merge%%;*}"
)sh";

constexpr const char* kParallelLaunch =
    R"sh(# With tasks as arguments, each of them runs, whatever the log of all says.
log=$sweep/joblog@ROUND_SUFFIX@
if [ $# -gt @BEFORE@ ]; then
  log=$sweep/joblog-some
  rm -f "$log"
fi
# Every line is a command. In a command of its own, parallel would replace braces of the path.
command="bash $(printf %q "$sweep/task.sh")"
for task in "${tasks[@]}"; do
  printf '%s\n' "$command $task@ROUND_WORD@"
done | parallel --jobs 1 --sshlogin @HOSTS@ --joblog "$log" --resume-failed
)sh";

constexpr const char* kMpiLaunch =
    R"sh(# Ranks take the tasks in this order. One that is killed does not end the others (--enable-recovery).
rm -rf "$sweep/taken"
mkdir "$sweep/taken"
printf '%s\n' "${tasks[@]}" >"$sweep/tasks"
ranks=$((${#tasks[@]} < @AT_ONCE@ ? ${#tasks[@]} : @AT_ONCE@))
mpirun -np "$ranks" --bind-to none --enable-recovery bash "$sweep/rank.sh"@ROUND@
# mpirun does not tell of a rank that was killed.
for task in "${tasks[@]}"; do
  [ "$(cat "$sweep/exit/@EXIT@" 2>/dev/null)" = 0 ]
done
)sh";

// With noclobber, bash opens the file with O_EXCL. On NFS, version 3 or newer, that is exclusive on the
// server, and a request that is sent again because the reply was lost still succeeds; one for mkdir or
// ln would then fail, and nobody would run the task.
constexpr const char* kTakeTasks =
    R"sh(# One rank of mpirun: runs those of sweep/tasks that no other rank has taken, one after the other. To take
# a task is to create its file in taken/, which only one rank can do.
set -u
mapfile -t tasks <"$sweep/tasks"
cd "$sweep/taken" || exit 2
for task in "${tasks[@]}"; do
  [ ! -e "$task" ] || continue
  if (set -o noclobber && echo "rank $OMPI_COMM_WORLD_RANK on $(uname -n)" >"$task") 2>/dev/null; then
    bash "$sweep/task.sh" "$task"@ROUND@
  elif [ ! -e "$task" ]; then
    echo "$sweep/taken/$task: cannot be written" >&2
    exit 2
  fi
done
exit 0
)sh";

constexpr const char* kLocalLaunch =
    R"sh(# In the folder, since xargs would replace braces of its path.
printf '%s\n' "${tasks[@]}" | (cd "$sweep" && exec xargs -P @AT_ONCE@ -I '{}' bash task.sh '{}'@ROUND@)
)sh";

// An argument of sbatch may have 128 KiB.
constexpr const char* kSlurmArray = R"sh(# The numbers of the tasks as ranges.
array=
for ((i = 0; i < ${#tasks[@]}; i = j)); do
  for ((j = i + 1; j < ${#tasks[@]} && tasks[j] == tasks[j - 1] + 1; j++)); do :; done
  array+=,${tasks[i]}
  [ $((j - i)) = 1 ] || array+=-${tasks[j - 1]}
done
array=${array#,}
)sh";

// Without this, bash would end with 127, and a missing flock would look like a lock that is held.
constexpr const char* kPrograms = R"sh(for program in @PROGRAMS@; do
  command -v "$program" >/dev/null && continue
  echo "$program: not found on PATH; this sweep needs it" >&2
  exit 2
done
)sh";

std::string Replaced(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string EngineLines(const Plan& plan) {
  const bool rounds = !plan.rounds.empty();
  std::string lines = plan.engine == kParallel ? kParallelLaunch
                      : plan.engine == kMpi    ? kMpiLaunch
                      : plan.engine == kLocal  ? kLocalLaunch
                      : rounds                 ? kSlurmLaunchRound
                                               : kSlurmLaunch;
  for (const auto& [from, to] : {std::pair{"@HOSTS@", Quoted(plan.hosts)},
                                 {"@ARRAY@", kSlurmArray},
                                 {"@AT_ONCE@", std::to_string(plan.at_once)},
                                 {"@ROUND_SUFFIX@", rounds ? "-$round" : ""},
                                 {"@EXIT@", rounds ? "$round-$task" : "$task"},
                                 {"@BEFORE@", rounds ? "1" : "0"},
                                 {"@ROUND@", rounds ? " \"$round\"" : ""},
                                 {"@ROUND_WORD@", rounds ? " $round" : ""}}) {
    lines = Replaced(std::move(lines), from, to);
  }
  return lines;
}

std::string ProgressLines(const Plan& plan, const fs::path& directory) {
  const std::string trials = fmt::format("{}{}", plan.rounds.empty() ? "" : "up to ", plan.trials);
  const std::string lines = Replaced(kProgress, "@TRIALS@", trials);
  return Replaced(lines, "@SHARDS@", Quoted((directory / kShards).string()));
}

// The number of tasks of each round, as elements of an array of bash.
std::string TaskCounts(const Plan& plan) {
  std::vector<size_t> counts;
  for (size_t round = 1; round <= plan.rounds.size(); ++round) {
    counts.push_back(TasksOfRound(plan, round));
  }
  return fmt::format("{}", fmt::join(counts, " "));
}

// Returns the lines that look for the programs of the engine.
std::string ProgramLines(const Plan& plan) {
  const std::string programs = plan.engine == kSlurm      ? "sbatch squeue"
                               : plan.engine == kParallel ? "parallel flock"
                               : plan.engine == kMpi      ? "mpirun flock"
                                                          : "xargs flock";
  return Replaced(kPrograms, "@PROGRAMS@", programs);
}

// The beginning of launch.sh, which sets the tasks to run.
std::string LaunchHead(const Plan& plan, const fs::path& sweep) {
  if (plan.rounds.empty()) {
    return fmt::format(
        "#!/bin/bash\n"
        "# Runs the tasks of this sweep whose numbers are the arguments, or the lines of a file (--from FILE),\n"
        "# or all {}, then the merge.\n"
        "set -euo pipefail\n"
        "sweep={}\n"
        "{}"
        "tasks=(\"$@\")\n"
        "[ \"${{1-}}\" != --from ] || mapfile -t tasks <\"$2\"\n"
        "[ $# -gt 0 ] || mapfile -t tasks < <(seq 0 {})\n",
        plan.tasks,
        Quoted(sweep.string()),
        ProgramLines(plan),
        plan.tasks - 1);
  }
  return fmt::format(
      "#!/bin/bash\n"
      "# Runs a round of this sweep, the first argument (default: 1), then its look, which starts the\n"
      "# next round if the claims are undecided. Further arguments are the numbers of its tasks to run, or\n"
      "# --from and a file with a number per line (default: all).\n"
      "set -euo pipefail\n"
      "sweep={}\n"
      "{}"
      "round=${{1:-1}}\n"
      "counts=({})  # tasks of each round\n"
      "tasks=(\"${{@:2}}\")\n"
      "[ \"${{2-}}\" != --from ] || mapfile -t tasks <\"$3\"\n"
      "[ $# -gt 1 ] || mapfile -t tasks < <(seq 0 $((counts[round - 1] - 1)))\n",
      Quoted(sweep.string()),
      ProgramLines(plan),
      TaskCounts(plan));
}

}  // namespace

std::string RankScript(const Plan& plan, const fs::path& directory) {
  const bool rounds = !plan.rounds.empty();
  return fmt::format("#!/bin/bash\nsweep={}\n{}",
                     Quoted((directory / kFolder).string()),
                     Replaced(kTakeTasks, "@ROUND@", rounds ? " \"$1\"" : ""));
}

std::string LaunchScript(const Plan& plan, const fs::path& directory) {
  const bool slurm = plan.engine == kSlurm;
  std::string text = LaunchHead(plan, directory / kFolder);
  if (!slurm) text += kLock;
  text += fmt::format("trap 'echo \"{}: numsim sweep status ${{sweep%/sweep}}\" >&2; exit 2' ERR\n",
                      slurm ? "sbatch did not take all jobs" : "not all tasks finished");
  if (!slurm) text += ProgressLines(plan, directory);
  text += EngineLines(plan);
  if (!slurm) {
    text += "kill \"$watcher\" 2>/dev/null || true\n";
    text +=
        fmt::format("exec bash \"$sweep/merge.sh\"{}\n", plan.rounds.empty() ? "" : " \"$round\"");
  }
  return text;
}

}  // namespace numsim::experiments::sweep
