#include "apps/sweep_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "experiments/runner/result_directory.h"
#include "experiments/sweep/scripts.h"
#include "experiments/sweep/status.h"
#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"

namespace numsim::apps {
namespace {

namespace fs = std::filesystem;
namespace sweep = experiments::sweep;
using experiments::Experiment;

// Prints a line per task.
void PrintTasks(const std::vector<sweep::TaskStatus>& tasks) {
  fmt::print("{:>6}  {:>15}  state\n", "task", "trials");
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string count = fmt::format("{} of {}", tasks[i].finished, tasks[i].trials);
    fmt::print("{:>6}  {:>15}  {}\n", i, count, tasks[i].Text());
  }
}

// Prints how far a sweep with rounds is.
void PrintRounds(const sweep::Plan& plan, const sweep::SweepStatus& status) {
  fmt::print("{} by {}, round {} of at most {}\n",
             plan.experiment,
             plan.engine,
             status.round,
             plan.rounds.size());
  PrintTasks(status.tasks);
  fmt::print("{} of {} trials of this round are finished\n",
             status.Finished(),
             plan.rounds[status.round - 1]);
  if (status.judged == 0) return;
  fmt::print("look {}: {}\n",
             status.judged,
             status.undecided.empty()
                 ? "every primary claim is decided"
                 : fmt::format("undecided: {}", fmt::join(status.undecided, ", ")));
}

sweep::SweepStatus StatusOf(const sweep::Plan& plan, const fs::path& directory) {
  const Experiment* const experiment = experiments::FindExperiment(plan.experiment);
  if (experiment == nullptr) {
    throw Error::Format("{}: experiment: '{}' is none of this numsim",
                        SweepScript(directory, sweep::kPlanFile).string(),
                        plan.experiment);
  }
  return sweep::ReadStatus(*experiment, plan, directory);
}

// Prints how far a sweep is and what to do next. Returns 0 if its results are complete, else 1.
int Status(const fs::path& directory) {
  const sweep::Plan plan = sweep::ReadPlan(directory);
  const sweep::SweepStatus status = StatusOf(plan, directory);
  if (plan.rounds.empty()) {
    fmt::print("{} by {}\n", plan.experiment, plan.engine);
    PrintTasks(status.tasks);
    fmt::print("{} of {} trials are finished\n", status.Finished(), plan.trials);
  } else {
    PrintRounds(plan, status);
  }
  if (status.ended) {
    fmt::print("merged: {}\n", (directory / experiments::kSummaryFile).string());
    return 0;
  }
  fmt::print("next: numsim sweep resume {}\n", sweep::Quoted(directory.string()));
  return 1;
}

// Returns the arguments of launch.sh for these tasks: their numbers or, if they are too many to be
// arguments, a file of them.
std::vector<std::string> TaskWords(const std::vector<size_t>& tasks, const fs::path& directory) {
  constexpr size_t kMostArguments = 1000;
  std::vector<std::string> words;
  for (const size_t task : tasks) words.push_back(std::to_string(task));
  if (words.size() <= kMostArguments) return words;
  const fs::path list = fs::absolute(SweepScript(directory, "unfinished")).lexically_normal();
  WriteFileAtomically(list, fmt::format("{}\n", fmt::join(words, "\n")));
  return {"--from", list.string()};
}

// Runs what is unfinished with the engine of the plan, or only the merge. With `dry_run`, prints the
// command.
int Resume(const fs::path& directory, bool dry_run) {
  const sweep::Plan plan = sweep::ReadPlan(directory);
  const sweep::SweepStatus status = StatusOf(plan, directory);
  const auto unfinished = sweep::UnfinishedTasks(status.tasks);
  const bool all = unfinished.empty();
  const fs::path script = SweepScript(directory, all ? sweep::kMergeScript : sweep::kLaunchScript);
  if (!experiments::Exists(script)) throw Error::Format("{}: is missing", script.string());
  std::vector<std::string> arguments = TaskWords(unfinished, directory);
  if (!plan.rounds.empty()) arguments.insert(arguments.begin(), std::to_string(status.round));
  fmt::print("{} of {} tasks{} are unfinished\n",
             unfinished.size(),
             status.tasks.size(),
             plan.rounds.empty() ? "" : fmt::format(" of round {}", status.round));
  if (!dry_run) BecomeScript(script, arguments);
  std::string command = "bash " + sweep::Quoted(script.string());
  for (const std::string& argument : arguments) command += " " + sweep::Quoted(argument);
  fmt::print("nothing was started; to run it:\n  {}\n", command);
  return 0;
}

// Adds a subcommand on the directory of a sweep, whose path it puts into `directory`.
CLI::App* AddDirectoryCommand(CLI::App* parent,
                              const std::string& name,
                              const std::string& help,
                              std::string& directory) {
  CLI::App* sub = parent->add_subcommand(name, help);
  sub->add_option("DIR", directory, "Directory of a sweep (its --out)")
      ->required()
      ->check(NotEmpty());
  Example(sub, fmt::format("numsim sweep {} results/mine", name));
  return sub;
}

}  // namespace

void AddSweepStatusCommand(Program& program, CLI::App* sweep) {
  auto directory = std::make_shared<std::string>();
  CLI::App* sub = AddDirectoryCommand(sweep, "status", "Say how far a sweep is", *directory);
  Choose(program, sub, [directory] { return Status(*directory); });
}

void AddSweepResumeCommand(Program& program, CLI::App* sweep) {
  auto directory = std::make_shared<std::string>();
  auto dry_run = std::make_shared<bool>(false);
  CLI::App* sub =
      AddDirectoryCommand(sweep, "resume", "Run what a sweep has not finished", *directory);
  sub->add_flag("--dry-run", *dry_run, "Print the command, start nothing");
  Choose(program, sub, [directory, dry_run] { return Resume(*directory, *dry_run); });
}

fs::path SweepScript(const fs::path& directory, std::string_view name) {
  return directory / sweep::kFolder / name;
}

void BecomeScript(const fs::path& script, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"bash", script.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  execvp("bash", argv.data());
  throw Error::Format("bash: cannot be run: {}", std::strerror(errno));
}

}  // namespace numsim::apps
