#include "experiments/sweep/scripts.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>
#include <vector>

#include "experiments/runner/exit_code.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/settings.h"
#include "experiments/study/own_studies.h"
#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"

namespace numsim::experiments::sweep {
namespace {

namespace fs = std::filesystem;

// The lines for sbatch that both jobs have. Quotes are sbatch's own.
std::string SlurmHead(const Plan& plan, const fs::path& sweep, std::string_view log) {
  return fmt::format(
      "#SBATCH --job-name={}\n"
      "#SBATCH --output=\"{}\"\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --requeue\n",
      plan.experiment,
      (sweep / kLogs / log).string());
}

std::string SlurmResources(const Plan& plan, bool merge) {
  std::string lines;
  for (const auto& [name, value] : plan.resources) {
    if (merge && name != "partition" && name != "account") continue;
    lines += fmt::format("#SBATCH --{}={}\n", name, value);
  }
  return lines;
}

bool HasThreads(const Plan& plan) {
  for (const std::string& argument : plan.arguments) {
    if (argument.starts_with("--threads=")) return true;
  }
  return false;
}

// Returns the line that shares the cores among the tasks of a machine; "" if the user said how many
// threads a task has.
std::string ThreadLine(const Plan& plan) {
  if (HasThreads(plan)) return "";
  if (plan.engine == kSlurm) return "export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}\n";
  if (plan.engine == kMpi) return "export OMP_NUM_THREADS=1\n";
  if (plan.engine == kLocal && plan.at_once > 1) {
    return fmt::format(
        "export OMP_NUM_THREADS=$((($(nproc) + {}) / {}))\n", plan.at_once - 1, plan.at_once);
  }
  return "";
}

// Returns the words that start numsim, which finds the user's studies on every machine.
std::string ProgramWords(const Plan& plan) {
  const char* const studies = std::getenv(study::kOwnStudies);
  const std::string assignment =
      studies == nullptr ? "" : fmt::format("env {}={} ", study::kOwnStudies, Quoted(studies));
  return assignment + (plan.wrapper.empty() ? "" : plan.wrapper + " ") + Quoted(plan.program);
}

std::string RunCommand(const Plan& plan, const fs::path& directory) {
  std::string command = fmt::format("{} run {}", ProgramWords(plan), Quoted(plan.experiment));
  for (const std::string& argument : plan.arguments) command += " \\\n  " + Quoted(argument);
  // Slurm runs a job once at a time. After its node failed, the task may go on elsewhere.
  if (!plan.rounds.empty()) command += " \\\n  --look \"$round\"";
  if (!plan.costs.empty()) {
    command += " \\\n  --trial-costs " + Quoted((directory / kFolder / kCostsFile).string());
  }
  return command + fmt::format(" \\\n  --shard \"$task/{}\" --out {}/\"$task\" --resume{}",
                               plan.tasks,
                               Quoted((directory / kShards).string()),
                               plan.engine == kSlurm ? " --take-over" : "");
}

// A shell runs traps only between commands, so the program runs in the background. `wait` returns
// at a signal too; the loop waits until the program has ended.
constexpr const char* kWaitForProgram = R"sh(program=$!
# At TERM the program ends its trials, keeps the finished ones and exits with 75.
trap 'signalled=yes; kill -TERM "$program"' INT TERM
signalled=yes
while [ "$signalled" = yes ]; do
  signalled=no
  wait "$program"
  status=$?
done
)sh";

// Under another name first: neither a full disk nor a loss of power leaves half of a code.
constexpr const char* kWriteExitCode = R"sh(code=$sweep/exit/{}
if echo "$status" >"$code.new" && sync "$code.new"; then
  mv "$code.new" "$code"
else
  rm -f "$code.new"
fi
)sh";

constexpr const char* kRequeue = R"sh(if [ "$status" = {} ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
)sh";

// The lines of task.sh that read its arguments.
std::string TaskArguments(const Plan& plan, const fs::path& sweep) {
  const bool rounds = !plan.rounds.empty();
  const std::string head =
      rounds
          ? "# Runs one of the tasks of a round of this sweep. The arguments are the numbers of the task and of\n"
            "# the round. Trials that are finished are not run again.\n"
          : fmt::format(
                "# Runs one of the {} tasks of this sweep, whose number is the argument. Trials that are\n"
                "# finished are not run again.\n",
                plan.tasks);
  return head + fmt::format(
                    "set -u\n"
                    "task={}\n"
                    "{}"
                    "sweep={}\n"
                    "cd {} || exit 2\n",
                    plan.engine == kSlurm ? "${1:-$SLURM_ARRAY_TASK_ID}" : "$1",
                    rounds ? "round=$2\nname=$round-$task\n" : "",
                    Quoted(sweep.string()),
                    Quoted(plan.directory));
}

void CheckSlurmPath(const Plan& plan, const fs::path& directory) {
  if (plan.engine != kSlurm || directory.string().find_first_of("%\\\"\n") == std::string::npos) {
    return;
  }
  throw Error::Format("--out {}: sbatch takes no path with % \\ \" or a new line for its log",
                      directory.string());
}

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string TaskScript(const Plan& plan, const fs::path& directory) {
  const fs::path sweep = directory / kFolder;
  const bool slurm = plan.engine == kSlurm;
  std::string text = "#!/bin/bash\n";
  if (slurm) {
    text += SlurmHead(plan, sweep, "%a.log");
    text += fmt::format("#SBATCH --array=0-{}\n#SBATCH --signal=B:TERM@60\n", plan.tasks - 1);
    text += SlurmResources(plan, /*merge=*/false);
  }
  text += TaskArguments(plan, sweep);
  const std::string name = plan.rounds.empty() ? "$task" : "$name";
  if (!slurm) text += fmt::format("exec >>\"$sweep/logs/{}.log\" 2>&1\n", name);
  text += fmt::format("rm -f \"$sweep/exit/{}\"\n", name) + ThreadLine(plan);
  text += RunCommand(plan, directory) + " &\n" + kWaitForProgram;
  text += fmt::format(kWriteExitCode, name);
  if (slurm) text += fmt::format(kRequeue, kStoppedBySignal);
  return text + "exit \"$status\"\n";
}

std::string MergeScript(const Plan& plan, const fs::path& directory) {
  std::string text = "#!/bin/bash\n";
  if (plan.engine == kSlurm) {
    text += SlurmHead(plan, directory / kFolder, "merge.log");
    text += SlurmResources(plan, /*merge=*/true);
  }
  const std::string out = Quoted(directory.string());
  const bool rounds = !plan.rounds.empty();
  text +=
      rounds
          ? "# Judges the results so far. If they do not decide, starts the round after that of the argument.\n"
          : "# Combines the trials of all tasks into the results.\n";
  text += fmt::format(
      "set -eu\n"
      "cd {}\n"
      "{}{} merge {} --shards-in {} --out {}",
      Quoted(plan.directory),
      rounds ? "status=0\n" : "exec ",
      ProgramWords(plan),
      Quoted(plan.experiment),
      Quoted((directory / kShards).string()),
      out);
  if (!rounds) return text + "\n";
  return text +
         fmt::format(
             " || status=$?\n"
             "[ \"$status\" = {} ] || exit \"$status\"\n"
             "# Without the lock of this round, which processes of the next one must not inherit.\n"
             "exec bash {} \"$(($1 + 1))\" 9>&-\n",
             kNextLook,
             Quoted((directory / kFolder / kLaunchScript).string()));
}

SweepLock WriteSweep(const Plan& plan,
                     const Settings& settings,
                     const std::string& costs,
                     const fs::path& directory) {
  CheckPlan(plan);
  CheckSlurmPath(plan, directory);
  const fs::path sweep = directory / kFolder;
  MakeDirectory(sweep);
  SweepLock lock(sweep);
  const bool begun = Exists(directory / kShards) || Exists(sweep / kJobFile);
  if (begun && !(ReadPlan(directory) == plan)) {
    throw Error::Format(
        "{}: holds tasks of another sweep; see `numsim sweep status {}`, or use another --out",
        directory.string(),
        directory.string());
  }
  MakeDirectory(sweep / kLogs);
  MakeDirectory(sweep / kExitCodes);
  WriteFileAtomically(sweep / kTaskScript, TaskScript(plan, directory));
  if (plan.engine == kMpi) WriteFileAtomically(sweep / kRankScript, RankScript(plan, directory));
  WriteFileAtomically(sweep / kMergeScript, MergeScript(plan, directory));
  WriteFileAtomically(sweep / kLaunchScript, LaunchScript(plan, directory));
  WriteSettings(sweep / kSettingsFile, {plan.experiment, settings});
  Remove(sweep / kCostsFile);
  if (!costs.empty()) WriteFileAtomically(sweep / kCostsFile, costs);
  WritePlan(plan, directory);
  return lock;
}

}  // namespace numsim::experiments::sweep
