#include "experiments/runner/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "experiments/runner/published.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/time_left.h"
#include "experiments/runner/wrapped_text.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

constexpr size_t kClaimsShown = 5;

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

void PrintLines(size_t indent, const std::string& text, const DemoOptions& demo) {
  for (const std::string& line : WrappedLines(indent, text)) demo.print(line);
}

// Returns the claims that the run tests in the order of the study, primary ones first.
std::vector<const JudgedClaim*> TestedClaims(const RunReport& report) {
  std::vector<const JudgedClaim*> tested;
  for (const JudgedClaim& claim : report.judged) {
    if (claim.result.verdict != Verdict::kNotTested) tested.push_back(&claim);
  }
  std::stable_partition(
      tested.begin(), tested.end(), [](const JudgedClaim* claim) { return claim->spec->primary; });
  return tested;
}

std::string WithBasis(std::string_view verdict, const std::string& basis) {
  return basis.empty() ? std::string(verdict) : fmt::format("{} ({})", verdict, basis);
}

// Returns the verdict of the largest published run: ", published: supported (toy, 85 M / 66 M tokens;
// docs/results.md)".
std::string PublishedText(const ClaimSpec& claim) {
  const PublishedVerdict published = QuotedVerdict(claim.id);
  if (published.page.empty()) return "";
  const std::string size = published.Size();
  return ", published: " +
         WithBasis(published.verdict, size + (size.empty() ? "" : "; ") + published.page);
}

void PrintClaim(const JudgedClaim& claim, const RunScale& scale, const DemoOptions& demo) {
  const ClaimSpec& spec = *claim.spec;
  PrintLines(2,
             fmt::format("{}{}: {}",
                         spec.id.substr(spec.id.find('/') + 1),
                         spec.primary ? "" : " (exploratory)",
                         spec.statement),
             demo);
  PrintLines(4,
             fmt::format("here: {}{}",
                         WithBasis(ToString(claim.result.verdict), SizeText(ScaleOf(claim, scale))),
                         PublishedText(spec)),
             demo);
}

void PrintVerdicts(const Step& step, const DemoOptions& demo) {
  demo.print("");
  PrintLines(0, fmt::format("{}: {}", step.experiment.name, step.experiment.title), demo);
  const auto claims = TestedClaims(step.report);
  const size_t shown = std::min(claims.size(), kClaimsShown);
  for (size_t i = 0; i < shown; ++i) PrintClaim(*claims[i], step.report.scale, demo);
  const std::string more =
      claims.size() > shown ? fmt::format("{} more claims and all", claims.size() - shown) : "all";
  demo.print(fmt::format("  {} numbers: {}", more, (step.out / "summary.txt").string()));
}

// Returns the first figure of a study, which is the one that its claims are about; "" without figures.
std::string FirstFigure(const Step& step) {
  for (const std::string& file : step.report.outputs) {
    if (file.ends_with(".svg")) return (step.out / file).string();
  }
  return "";
}

void PrintFigures(const std::vector<Step>& steps, const DemoOptions& demo) {
  demo.print("");
  for (const Step& step : steps) {
    const std::string figure = FirstFigure(step);
    if (figure.empty()) continue;
    demo.print("The figure to open first: " + figure);
    demo.print(fmt::format("All figures, each also as .pdf: {}/*/*.svg", demo.out.string()));
    break;
  }
  for (const Step& step : steps) {
    if (!step.report.notice.empty()) demo.print(step.report.notice);
  }
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
  PrintFigures(steps, options);
}

}  // namespace numsim::experiments
