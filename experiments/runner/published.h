// The verdicts that experiments/published has, compiled into the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/csv.h"

namespace numsim::experiments {

// A run whose results are in experiments/published.
struct PublishedRun {
  std::string directory;  // "experiments/published/moment-formats/small"
  std::string page;       // the page about it: "docs/results.md"
  Table verdicts;         // its verdicts.csv
};

// Returns the runs in the order of runs.csv there: of those that test a claim, the one that numsim quotes
// is last (docs/verdicts.md).
const std::vector<PublishedRun>& PublishedRuns();

// A published verdict on a claim.
struct PublishedVerdict {
  std::string verdict = "not tested";
  std::string scale, seeds, preset, margin;
  std::string reason = "no published run";  // why it is inconclusive or not tested
  std::string page, directory;
};
// Returns the verdict of the last run that tests the claim. If no run tests it, returns the reason given
// by the last run that has the claim's arms; if there is none of these either, that of the last run.
PublishedVerdict QuotedVerdict(std::string_view claim);

}  // namespace numsim::experiments
