// `numsim sweep`: an experiment as tasks for Slurm, GNU parallel, mpirun or this machine.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/command.h"
#include "apps/run_options.h"
#include "apps/sweep_progress.h"
#include "experiments/runner/completion.h"
#include "experiments/runner/looks.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/time_left.h"
#include "experiments/runner/trial_costs.h"
#include "experiments/sweep/estimate.h"
#include "experiments/sweep/scripts.h"
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
  const sweep::SweepLock lock = sweep::WriteSweep(plan, settings, costs, directory);
  const fs::path launch = SweepScript(directory, sweep::kLaunchScript);
  fmt::print("{}{} trials in {} tasks{}; scripts and plan are in {}\n",
             plan.rounds.empty() ? "" : "up to ",
             plan.trials,
             plan.tasks,
             plan.rounds.empty() ? "" : fmt::format(" and up to {} rounds", plan.rounds.size()),
             (directory / sweep::kFolder).string());
  if (!arguments.dry_run) {
    lock.PassOn();
    BecomeScript(launch, {});
  }
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

}  // namespace

void AddSweepCommand(Program& program) {
  CLI::App* parent = program.app.add_subcommand(
      "sweep", "Run an experiment as tasks: Slurm, GNU parallel, mpirun or processes here");
  parent->fallthrough();
  Example(parent, "numsim sweep quantization-variance --slurm --time 0:20:00 --out results/mine");
  AddSweepStatusCommand(program, parent);
  AddSweepResumeCommand(program, parent);
  if (!program.Has("sweep")) return;
  for (const Experiment& experiment : experiments::AllExperiments()) {
    AddSweepOf(program, parent, experiment);
  }
}

}  // namespace numsim::apps
