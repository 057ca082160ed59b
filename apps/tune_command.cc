// `numsim tune`: chooses the learning rate of each arm on seeds that do not judge.
#include <fmt/format.h>

#include <memory>

#include "apps/command.h"
#include "apps/run_options.h"
#include "apps/run_until_signal.h"
#include "experiments/runner/tuning.h"
#include "numsim/base/split_list.h"

namespace numsim::apps {
namespace {

using experiments::Experiment;

int Tune(const Experiment& experiment,
         const TuneArguments& arguments,
         const CLI::App& sub,
         const Program& program) {
  experiments::RunOptions options =
      OptionsOfRunAside(experiment, arguments.run, sub, program, "tune");
  experiments::TuningReport report;
  const auto stopped = RunUntilSignal(options, arguments.run.grace, [&] {
    report = experiments::Tune(experiment, options, SplitList(arguments.grid));
    return report.run;
  });
  if (stopped) return *stopped;
  fmt::print("{}written to {}: {}\n",
             experiments::TuningText(report),
             options.out.string(),
             experiments::kRatesFile);
  return 0;
}

void AddTuneOf(Program& program, CLI::App* tune, const Experiment& experiment) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* sub = tune->add_subcommand(experiment.name, experiment.title);
  AddTuneOptions(sub, experiment, *arguments);
  Example(sub, fmt::format("numsim tune {} --rate-grid 1e-3,3e-3,1e-2", experiment.name));
  Choose(program, sub, [&experiment, arguments, sub, &program] {
    return Tune(experiment, *arguments, *sub, program);
  });
}

}  // namespace

void AddTuneCommand(Program& program) {
  CLI::App* tune = program.app.add_subcommand(
      "tune", "Choose the learning rate of each arm of an experiment on seeds that do not judge");
  tune->fallthrough();
  Example(tune, "numsim tune moment-formats --rate-grid 1e-3,3e-3,1e-2 --rate-seeds 3");
  if (!program.Has("tune")) return;
  for (const Experiment& experiment : experiments::AllExperiments()) {
    if (!experiment.tuning.table.empty()) AddTuneOf(program, tune, experiment);
  }
}

}  // namespace numsim::apps
