// `numsim sweep`: an experiment as tasks for Slurm, GNU parallel, mpirun or this machine.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "apps/command.h"
#include "apps/run_options.h"
#include "experiments/core/completion.h"
#include "experiments/core/looks.h"
#include "experiments/core/result_directory.h"
#include "experiments/core/settings.h"
#include "experiments/core/time_left.h"
#include "experiments/core/trial_costs.h"
#include "experiments/sweep/estimate.h"
#include "experiments/sweep/scripts.h"
#include "experiments/sweep/status.h"
#include "numsim/base/error.h"
#include "numsim/io/manifest.h"

namespace numsim::apps {
namespace {

namespace fs = std::filesystem;
namespace sweep = experiments::sweep;
using experiments::Experiment;

struct SweepArguments {
  RunArguments run;
  bool slurm = false, dry_run = false;
  std::string hosts;                             // --parallel
  size_t ranks = 0, at_once = 0;                 // --mpi, --local; 0: not given
  size_t tasks = 0;                              // 0: from the estimate
  std::string wrapper;                           // words before numsim; may be empty
  std::vector<std::string> costs;                // directories of earlier runs
  std::map<std::string, std::string> resources;  // a value of every option; "": not given
};

// Runs a script in place of this process. Returns only by throwing Error.
[[noreturn]] void Become(const fs::path& script, const std::vector<size_t>& numbers) {
  std::vector<std::string> words = {"bash", script.string()};
  words.reserve(words.size() + numbers.size());
  for (const size_t number : numbers) words.push_back(std::to_string(number));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  execvp("bash", argv.data());
  throw Error::Format("bash: cannot be run: {}", std::strerror(errno));
}

fs::path ScriptOf(const fs::path& directory, std::string_view script) {
  return directory / sweep::kFolder / script;
}

// Throws Error for options of run that a sweep sets itself or cannot follow.
void CheckRunOptions(const Experiment& experiment, const CLI::App& sub) {
  for (const char* const option : {"--shard", "--look", "--resume", "--trial-costs"}) {
    if (sub.count(option) == 0) continue;
    throw Error::Format(
        "{}: set by the sweep for each task; `numsim sweep resume DIR` continues it", option);
  }
  if (experiment.timed) {
    throw Error::Format(
        "{} measures times, which belong to one machine and one run; use `numsim run`",
        experiment.name);
  }
}

// Sets the engine of the plan and what belongs to it.
void SetEngine(const SweepArguments& arguments, const CLI::App& sub, sweep::Plan& plan) {
  std::vector<std::string_view> given;
  for (const std::string_view engine :
       {sweep::kSlurm, sweep::kParallel, sweep::kMpi, sweep::kLocal}) {
    if (sub.count(fmt::format("--{}", engine)) > 0) given.push_back(engine);
  }
  if (given.size() != 1) {
    throw Error::Format(
        "{} engines are given; expected one of --slurm, --parallel HOSTS, --mpi N, "
        "--local N",
        given.size());
  }
  plan.engine = given.front();
  plan.hosts = arguments.hosts;
  if (plan.engine == sweep::kLocal) plan.at_once = arguments.at_once;
  if (plan.engine == sweep::kMpi) plan.at_once = arguments.ranks;
  for (const auto& [name, value] : arguments.resources) {
    if (sub.count("--" + name) == 0) continue;
    if (plan.engine != sweep::kSlurm) throw Error::Format("--{}: only with --slurm", name);
    plan.resources[name] = value;
  }
}

// Adds the options that were given, other than those of the sweep itself, as words of a command.
void AddGiven(const CLI::App& app, std::vector<std::string>& words) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_group() == "Sweep") continue;
    const std::string name = option->get_lnames().front();
    if (name == "out" || name == "help" || name == "version") continue;
    for (const std::string& value : option->results()) {
      if (value.empty()) {
        words.insert(words.end(), {"--" + name, ""});
      } else {
        words.push_back(fmt::format("--{}={}", name, value));
      }
    }
  }
}

// The trials of a sweep and how long they take.
struct Work {
  std::vector<experiments::Trial> trials;
  std::vector<experiments::Look> looks;
  double seconds_per_cost = 0;  // 0: not known
  std::string basis;            // of these seconds
};

Work MakeWork(const Experiment& experiment,
              const experiments::Settings& settings,
              const std::vector<std::string>& costs) {
  Work work;
  work.trials = experiments::ListTrials(experiment, experiments::WithAllSeeds(settings));
  work.looks = experiments::ListLooks(settings, work.trials);
  if (costs.empty()) {
    work.seconds_per_cost = sweep::SecondsPerCost(experiment, settings);
    work.basis = "the times of the presets on two cores";
    return work;
  }
  const size_t known = sweep::MeasureCosts(experiment, {costs.begin(), costs.end()}, work.trials);
  work.seconds_per_cost = 1;
  work.basis = fmt::format("the seconds that trials like {} of these {} took, one after the other",
                           known,
                           work.trials.size());
  return work;
}

// Returns the seconds of the round that takes longest, one trial after the other; 0 if not known.
double SecondsOfLongestRound(const Work& work) {
  double longest = 0;
  for (const experiments::Look& look : work.looks) {
    double cost = 0;
    for (const size_t i : look.added) cost += work.trials[i].cost;
    longest = std::max(longest, cost);
  }
  return longest * work.seconds_per_cost;
}

// Sets the number of trials, and with --until-decided those of each round.
void SetTrials(const Work& work, bool rounds, sweep::Plan& plan) {
  plan.trials = work.trials.size();
  if (!rounds) return;
  for (const experiments::Look& look : work.looks) plan.rounds.push_back(look.added.size());
}

// Returns the least number of tasks that gives every process of the engine one.
size_t LeastTasks(const sweep::Plan& plan) {
  if (plan.engine != sweep::kParallel) return plan.at_once;
  return 1 + static_cast<size_t>(std::count(plan.hosts.begin(), plan.hosts.end(), ','));
}

// Sets the number of tasks: as given, or from an estimate, which is printed.
void SetTasks(const Work& work, size_t given, sweep::Plan& plan) {
  plan.tasks = given;
  if (given != 0) return;
  const double seconds = SecondsOfLongestRound(work);
  if (seconds == 0) {
    throw Error::Format(
        "--tasks is missing: no preset of {} has a known time; --costs DIR takes those of an earlier "
        "run",
        plan.experiment);
  }
  // A round begins when the ones before it have ended.
  const size_t trials =
      plan.rounds.empty() ? plan.trials : *std::max_element(plan.rounds.begin(), plan.rounds.end());
  plan.tasks = sweep::TaskCount(seconds, trials, LeastTasks(plan));
  fmt::print("estimate, from {}: {} {}, {} per task\n",
             work.basis,
             experiments::RoughText(seconds),
             plan.rounds.empty() ? "in all" : "for the longest round",
             experiments::RoughText(seconds / static_cast<double>(plan.tasks)));
}

int Sweep(const Experiment& experiment,
          const SweepArguments& arguments,
          const CLI::App& sub,
          const Program& program) {
  CheckRunOptions(experiment, sub);
  sweep::Plan plan;
  plan.experiment = experiment.name;
  SetEngine(arguments, sub, plan);
  const experiments::Settings settings = SettingsOf(experiment, arguments.run, sub);
  const Work work = MakeWork(experiment, settings, arguments.costs);
  SetTrials(work, settings.max_seeds > 0, plan);
  SetTasks(work, arguments.tasks, plan);
  std::string costs;
  if (!arguments.costs.empty()) {
    costs = experiments::TrialCostsText(work.trials);
    plan.costs = Sha256OfText(costs);
  }
  AddGiven(program.app, plan.arguments);
  AddGiven(sub, plan.arguments);
  plan.wrapper = arguments.wrapper;
  plan.program = fs::read_symlink("/proc/self/exe").string();
  plan.directory = fs::current_path().string();
  const std::string& out = arguments.run.out;
  const fs::path directory =
      fs::absolute(out.empty() ? "results/" + experiment.name : out).lexically_normal();
  experiments::CheckDirectory(experiment, settings, directory);
  sweep::WriteSweep(plan, settings, costs, directory);
  const fs::path launch = ScriptOf(directory, sweep::kLaunchScript);
  fmt::print("{}{} trials in {} tasks{}; scripts and plan are in {}\n",
             plan.rounds.empty() ? "" : "up to ",
             plan.trials,
             plan.tasks,
             plan.rounds.empty() ? "" : fmt::format(" and up to {} rounds", plan.rounds.size()),
             (directory / sweep::kFolder).string());
  if (!arguments.dry_run) Become(launch, {});
  fmt::print("nothing was started; to run it:\n  bash {}\n", sweep::Quoted(launch.string()));
  return 0;
}

void AddSweepOptions(CLI::App* sub, SweepArguments& arguments) {
  sub->add_flag("--slurm", arguments.slurm, "Submit an array of jobs and a merge to Slurm")
      ->group("Sweep");
  sub->add_option("--parallel",
                  arguments.hosts,
                  "HOSTS: GNU parallel, one task at a time on each host of the list, as of its "
                  "--sshlogin; : is this machine")
      ->check(NotEmpty())
      ->group("Sweep");
  sub->add_option(
         "--mpi", arguments.ranks, "N: mpirun with N ranks, which take tasks until none is left")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Sweep");
  sub->add_option("--local", arguments.at_once, "N: N processes at a time on this machine")
      ->check(CLI::Range(1, 4096))
      ->group("Sweep");
  sub->add_option("--tasks",
                  arguments.tasks,
                  "Number of tasks (default: so many that each lasts about five minutes)")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Sweep");
  sub->add_option(
         "--costs",
         arguments.costs,
         "DIR: share the trials out by the seconds that trials with the same parameters took "
         "in the results of an earlier run (repeatable)")
      ->allow_extra_args(false)
      ->check(NotEmpty())
      ->group("Sweep");
  sub->add_option("--wrapper",
                  arguments.wrapper,
                  "Command of bash that starts this program in tasks and merge, such as "
                  "'apptainer exec numsim.sif'; must pass SIGTERM on")
      ->check(NotEmpty())
      ->group("Sweep");
  sub->add_flag("--dry-run", arguments.dry_run, "Write the scripts, start nothing")->group("Sweep");
  for (const char* const name : {"cpus-per-task", "mem", "gpus", "time", "partition", "account"}) {
    sub->add_option(
           fmt::format("--{}", name), arguments.resources[name], "Of sbatch, for each task")
        ->group("Sweep");
  }
}

void AddSweepOf(Program& program, CLI::App* parent, const Experiment& experiment) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* sub = parent->add_subcommand(experiment.name, experiment.title);
  AddSweepOptions(sub, *arguments);
  AddRunOptions(sub, experiment, arguments->run);
  for (const char* const option : {"--shard", "--look", "--resume", "--trial-costs"}) {
    sub->get_option(option)->group("");  // not in the help: refused
  }
  Example(sub, fmt::format("numsim sweep {} --local 2 --out results/mine", experiment.name));
  Choose(program, sub, [&experiment, arguments, sub, &program] {
    return Sweep(experiment, *arguments, *sub, program);
  });
}

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
                        ScriptOf(directory, sweep::kPlanFile).string(),
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

// Runs what is unfinished with the engine of the plan, or only the merge. With `dry_run`, prints the command.
int Resume(const fs::path& directory, bool dry_run) {
  const sweep::Plan plan = sweep::ReadPlan(directory);
  const sweep::SweepStatus status = StatusOf(plan, directory);
  const auto unfinished = sweep::UnfinishedTasks(status.tasks);
  const bool all = unfinished.empty();
  const fs::path script = ScriptOf(directory, all ? sweep::kMergeScript : sweep::kLaunchScript);
  if (!experiments::Exists(script)) throw Error::Format("{}: is missing", script.string());
  std::vector<size_t> arguments = unfinished;
  if (!plan.rounds.empty()) arguments.insert(arguments.begin(), status.round);
  fmt::print("{} of {} tasks{} are unfinished\n",
             unfinished.size(),
             status.tasks.size(),
             plan.rounds.empty() ? "" : fmt::format(" of round {}", status.round));
  if (!dry_run) Become(script, arguments);
  std::string command = "bash " + sweep::Quoted(script.string());
  for (const size_t number : arguments) command += fmt::format(" {}", number);
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

void AddStatus(Program& program, CLI::App* parent) {
  auto directory = std::make_shared<std::string>();
  CLI::App* sub = AddDirectoryCommand(parent, "status", "Say how far a sweep is", *directory);
  Choose(program, sub, [directory] { return Status(*directory); });
}

void AddResume(Program& program, CLI::App* parent) {
  auto directory = std::make_shared<std::string>();
  auto dry_run = std::make_shared<bool>(false);
  CLI::App* sub =
      AddDirectoryCommand(parent, "resume", "Run what a sweep has not finished", *directory);
  sub->add_flag("--dry-run", *dry_run, "Print the command, start nothing");
  Choose(program, sub, [directory, dry_run] { return Resume(*directory, *dry_run); });
}

}  // namespace

void AddSweepCommand(Program& program) {
  CLI::App* parent = program.app.add_subcommand(
      "sweep", "Run an experiment as tasks: Slurm, GNU parallel, mpirun or processes here");
  parent->fallthrough();
  Example(parent, "numsim sweep quantization-variance --slurm --time 0:20:00 --out results/mine");
  AddStatus(program, parent);
  AddResume(program, parent);
  for (const Experiment& experiment : experiments::AllExperiments()) {
    AddSweepOf(program, parent, experiment);
  }
}

}  // namespace numsim::apps
