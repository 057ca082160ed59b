#include "experiments/runner/demo.h"

#include <fmt/format.h>

#include <optional>

#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/time_left.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

constexpr size_t kLineWidth = 100;

// One experiment of the demo and its results.
struct Step {
  const Experiment& experiment;
  const Preset& preset;
  std::filesystem::path out;
  RunReport report = {};
};

std::vector<Step> StepsOf(const std::vector<Experiment>& experiments,
                          const std::filesystem::path& out) {
  std::vector<Step> steps;
  for (const Experiment& experiment : experiments) {
    for (const Preset& preset : experiment.presets) {
      if (preset.name == kDemoPreset) steps.push_back({experiment, preset, out / experiment.name});
    }
  }
  if (steps.empty()) throw Error::Format("no experiment has the preset {}", kDemoPreset);
  return steps;
}

// Returns the head of a step's progress line: the time left for the whole demo, then the
// experiment. `later` is the planned seconds of the steps that follow.
ProgressHead HeadOf(const Step& step, const Pace& pace, double later) {
  std::optional<double> first;
  return [&step, pace, later, first, watch = Stopwatch()](double left) mutable {
    if (!first) first = left;
    const double planned = step.preset.seconds;
    Pace now = pace;
    now.Add(planned * (*first - left), watch.Seconds());
    return fmt::format(
        "{} left  {} ", ClockText(now.Seconds(planned * left + later)), step.experiment.name);
  };
}

void RunStep(Step& step, const DemoOptions& demo, double later, Pace& pace) {
  RunOptions options;
  options.settings = MakeSettings(step.experiment, kDemoPreset, 0, step.preset.seeds, {});
  options.out = step.out;
  options.resume = true;
  options.progress = demo.progress;
  options.progress_head = HeadOf(step, pace, later);
  options.command = demo.command;
  const Stopwatch watch;
  step.report = Run(step.experiment, options);
  const RunReport& report = step.report;
  const double seconds = watch.Seconds();
  const double share = static_cast<double>(report.trials_run) / report.trials_total;
  pace.Add(step.preset.seconds * share, seconds);
  std::string line = fmt::format("{:<24} {:4.0f} s", step.experiment.name, seconds);
  if (report.trials_run < report.trials_total) {
    line += fmt::format(", {} of {} trials were already finished",
                        report.trials_total - report.trials_run,
                        report.trials_total);
  }
  if (later > 0) line += fmt::format(", about {} left", ClockText(pace.Seconds(later)));
  demo.print(line);
}

// Returns the claim's name and statement. Statements of related claims may differ only after the
// point at which the line is cut.
std::string LabelOf(const ClaimSpec& claim) {
  return fmt::format("{}{}: {}",
                     claim.id.substr(claim.id.find('/') + 1),
                     claim.primary ? "" : " (exploratory)",
                     claim.statement);
}

void PrintVerdicts(const Step& step, const DemoOptions& demo) {
  demo.print("");
  demo.print(fmt::format("{}: {}", step.experiment.name, step.experiment.title));
  for (const JudgedClaim& claim : step.report.judged) {
    if (claim.result.verdict == Verdict::kNotTested) continue;
    demo.print("  " + ClaimLine(claim.result.verdict, LabelOf(*claim.spec)));
  }
  demo.print("  " + (step.out / "summary.txt").string());
}

void PrintFigures(const Step& step, const DemoOptions& demo) {
  for (const std::string& file : step.report.outputs) {
    if (file.ends_with(".svg")) demo.print("  " + (step.out / file).string());
  }
  if (!step.report.notice.empty()) demo.print("  " + step.report.notice);
}

}  // namespace

void RunDemo(const std::vector<Experiment>& experiments, const DemoOptions& options) {
  std::vector<Step> steps = StepsOf(experiments, options.out);
  double later = 0;
  for (const Step& step : steps) later += step.preset.seconds;
  options.print(
      fmt::format("{} experiments, about {} on two cores", steps.size(), ClockText(later)));
  Pace pace;
  for (Step& step : steps) {
    later -= step.preset.seconds;
    RunStep(step, options, later, pace);
  }
  for (const Step& step : steps) PrintVerdicts(step, options);
  options.print("");
  options.print("figures (each also as .pdf)");
  for (const Step& step : steps) PrintFigures(step, options);
}

std::string ClaimLine(Verdict verdict, std::string_view claim) {
  std::string line = fmt::format("{:<14} {}", ToString(verdict), claim);
  if (line.size() <= kLineWidth) return line;
  constexpr std::string_view kCut = " ...";
  line.resize(line.rfind(' ', kLineWidth - kCut.size()));
  return line + std::string(kCut);
}

}  // namespace numsim::experiments
