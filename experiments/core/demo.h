// The demo: the preset `demo` of every experiment that has one, their verdicts and figures.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"

namespace numsim::experiments {

inline constexpr std::string_view kDemoPreset = "demo";

struct DemoOptions {
  std::filesystem::path out;         // DIR: results go to DIR/EXPERIMENT
  bool progress = false;             // a line on stderr with the time left, rewritten in place
  std::vector<std::string> command;  // argv, for the manifests
  std::function<void(const std::string&)> print;  // takes each line of the report
};

// Runs those of `experiments` that have the preset, one after another; points that are finished
// already are kept. Prints a line when one is done, with the time left, and at the end the verdict
// on each claim that was measured and the paths of the figures. Throws Error as Run does, and when
// no experiment has the preset.
void RunDemo(const std::vector<Experiment>& experiments, const DemoOptions& options);

// The time that work takes which was planned to take so many seconds: at the pace of the work done
// so far, of which a few planned seconds count as done in time.
class Pace {
 public:
  // Work planned to take `planned` seconds was done in `elapsed`.
  void Add(double planned, double elapsed);
  double Seconds(double planned) const;

 private:
  static constexpr double kInTime = 5;
  double planned_ = kInTime, elapsed_ = kInTime;
};

// "1:05", "1:00:00".
std::string ClockText(double seconds);

// Verdict and claim in one line, cut at a word where that is longer than 100 characters.
std::string ClaimLine(const Claim& claim);

}  // namespace numsim::experiments
