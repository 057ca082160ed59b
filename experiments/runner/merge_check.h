// Checks of shards before a merge: commit, build, processor and trials, beside their settings.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/runner/result_directory.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {

// Returns true if the results depend on the processor: times, and accumulation mode library.
bool DependsOnProcessor(const Experiment& experiment, const Settings& settings);

// Names of the differences that --allow accepts: "commit, build, processor, double".
inline constexpr std::string_view kAllowable = "commit, build, processor, double";

// Throws Error naming the nearest valid name for an element of `allow` that is none of kAllowable.
void CheckAllowed(const std::vector<std::string>& allow);

// A trial that a directory holds although another directory had it before.
struct DoubleTrial {
  size_t trial = 0;
  std::filesystem::path first, second;
};

// Compares what the trials were measured with, and throws Error naming the directories and the values
// where they differ in something that is not in `allow`:
//   double     a trial is in two directories
//   commit     BuildCommit of the program
//   build      its compiler and build type
//   processor  only where results depend on it: timed experiments and accumulation mode library
// What an older version did not record counts as the value "unknown". Where results depend on the
// processor, two unknown ones count as different.
// Returns each allowed difference with its values, "none" if there is none; for the manifest.
NamedTexts CheckAlike(const Experiment& experiment,
                      const Settings& settings,
                      const FinishedTrials& finished,
                      const std::vector<DoubleTrial>& doubles,
                      const std::vector<std::string>& allow);

// Returns the first numbers of a list: "3, 7, 9 and 12 more".
std::string NumberList(const std::vector<size_t>& numbers);

}  // namespace numsim::experiments
