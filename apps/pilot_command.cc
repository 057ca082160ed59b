// `numsim pilot`: how many seeds the claims of an experiment need.
#include <fmt/format.h>

#include <memory>

#include "apps/command.h"
#include "apps/run_options.h"
#include "apps/run_until_signal.h"
#include "experiments/runner/pilot.h"

namespace numsim::apps {
namespace {

using experiments::Experiment;

int Pilot(const Experiment& experiment,
          const RunArguments& arguments,
          const CLI::App& sub,
          const Program& program) {
  experiments::RunOptions options = OptionsOfRunAside(experiment, arguments, sub, program, "pilot");
  experiments::PilotReport report;
  const auto stopped = RunUntilSignal(options, arguments.grace, [&] {
    report = experiments::Pilot(experiment, options);
    return report.run;
  });
  if (stopped) return *stopped;
  fmt::print("{}written to {}: {}\n",
             experiments::PilotText(report),
             options.out.string(),
             experiments::kPilotFile);
  return 0;
}

void AddPilotOf(Program& program, CLI::App* pilot, const Experiment& experiment) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* sub = pilot->add_subcommand(experiment.name, experiment.title);
  AddPilotOptions(sub, experiment, *arguments);
  Example(sub, fmt::format("numsim pilot {} --preset quick --seeds 4", experiment.name));
  Choose(program, sub, [&experiment, arguments, sub, &program] {
    return Pilot(experiment, *arguments, *sub, program);
  });
}

}  // namespace

void AddPilotCommand(Program& program) {
  CLI::App* pilot = program.app.add_subcommand(
      "pilot",
      "Measure the scatter of an experiment on seeds that do not judge; print the seeds that its "
      "claims need");
  pilot->fallthrough();
  Example(pilot, "numsim pilot moment-formats --preset quick --seeds 4");
  if (!program.Has("pilot")) return;
  for (const Experiment& experiment : experiments::AllExperiments()) {
    AddPilotOf(program, pilot, experiment);
  }
}

}  // namespace numsim::apps
