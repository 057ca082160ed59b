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
// each experiment; at the end, per experiment, at most five claims that it tested, in whole sentences, each
// with the verdict of this run and that of the largest published one; and the figure to open first. Throws
// Error as Run does, and when no experiment has the preset.
void RunDemo(const std::vector<Experiment>& experiments, const DemoOptions& options);

}  // namespace numsim::experiments
