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

// Returns the runs in the order of runs.csv there.
const std::vector<PublishedRun>& PublishedRuns();

// A published verdict on a claim.
struct PublishedVerdict {
  std::string verdict = "not tested";
  std::string scale, seeds, preset, margin;
  std::string reason = "no published run";  // why it is inconclusive or not tested
  std::string page, directory;
  double parameters = 0, tokens = 0;          // 0: nothing is trained
  std::string word;                           // as of ScaleWord
  std::vector<PublishedVerdict> others = {};  // of other runs that test the claim and say otherwise

  // Returns the word and the size, as SizeText.
  std::string Size() const;
};
// Returns the verdict of the run that tests the claim with the most parameters, and of these with the most
// tokens, both to two digits; of several, the last of runs.csv. If no run tests it, returns the reason given by the largest
// run that has the claim's arms; if there is none of these either, that of the largest run.
PublishedVerdict QuotedVerdict(std::string_view claim);

}  // namespace numsim::experiments
