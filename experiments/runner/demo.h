// The demo: runs every experiment that has a preset `demo` and lists their verdicts and figures.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

inline constexpr std::string_view kDemoPreset = "demo";

struct DemoOptions {
  std::filesystem::path out;         // DIR: results go to DIR/EXPERIMENT
  bool progress = false;             // show a line on stderr with the time left, rewritten in place
  std::vector<std::string> command;  // argv, for the manifests
  std::function<void(const std::string&)> print;  // receives each line of the report
};

// Runs every experiment of `experiments` that has the preset `demo`, one after another. Trials that
// are already finished in `options.out` are not run again. Prints a line with the time left after
// each experiment, and at the end the verdict on each claim that was measured and the paths of the
// figures. Throws Error as Run does, and when no experiment has the preset.
void RunDemo(const std::vector<Experiment>& experiments, const DemoOptions& options);

// Formats verdict and claim as one line, cut between words to at most 100 characters.
std::string ClaimLine(Verdict verdict, std::string_view claim);

}  // namespace numsim::experiments
