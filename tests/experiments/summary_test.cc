// The text of summary.txt.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "experiments/claims/claim.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "tests/experiments/made_up_experiment.h"

namespace numsim::experiments {
namespace {

// Returns the summary of a run with the made-up claims `a/one`, `a/two`, ... of the given
// statements, which hold exactly.
std::string TextOf(const std::vector<std::string>& statements,
                   const std::string& measured,
                   const std::string& notes) {
  Experiment experiment = MadeUpExperiment();
  experiment.claims.clear();
  for (const std::string& statement : statements) {
    ClaimSpec claim = MadeUpClaim();
    claim.statement = statement;
    claim.evidence = [measured](const Settings&, const Tables&) {
      return Evidence{.exact = true, .measured = measured};
    };
    experiment.claims.push_back(claim);
  }
  const Settings settings = MakeSettings(experiment, "quick", 7, 2, {});
  return SummaryText(experiment, settings, Judge(experiment.claims, settings, {}), {}, notes);
}

TEST(SummaryText, ListsClaimsWithVerdictsAndNotes) {
  EXPECT_EQ(
      TextOf({"First.", "Second."}, "One.", "A note.\n\n  a table, as it is\nAnother note.\n"),
      "made_up: sums of made-up values\n"
      "Reproduces: nothing\n"
      "Settings:   --preset quick --seed 7 --seeds 2 --rows 2 --shapes ab,cde,f\n"
      "\n"
      "Claim:    made_up/positive: First.\n"
      "Contrast: the sums\n"
      "Measured: One.\n"
      "Verdict:  exact: holds (mechanism)\n"
      "\n"
      "Claim:    made_up/positive: Second.\n"
      "Contrast: the sums\n"
      "Measured: One.\n"
      "Verdict:  exact: holds (mechanism)\n"
      "\n"
      "A note.\n"
      "\n"
      "  a table, as it is\n"
      "Another note.\n");
}

TEST(SummaryText, WrapsAt88CharactersBelowTheFirstWord) {
  std::string long_text;
  for (int i = 0; i < 60; ++i) long_text += "w\xC3\xB6rd" + std::to_string(i) + " ";
  const std::string text = TextOf({long_text}, long_text, long_text + std::string(120, 'x'));
  std::istringstream lines(text);
  size_t longest = 0;
  bool has_indent = false;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(line.ends_with(' ')) << line;
    if (line == std::string(120, 'x')) continue;  // A word is never broken.
    size_t width = 0;
    for (const char c : line) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    longest = std::max(longest, width);
    has_indent = has_indent || line.starts_with("          w");
  }
  EXPECT_LE(longest, 88u);
  EXPECT_GT(longest, 80u);
  EXPECT_TRUE(has_indent);
}

TEST(SummaryText, WithoutClaimsAndNotesIsTheHead) {
  EXPECT_EQ(TextOf({}, "", ""),
            "made_up: sums of made-up values\n"
            "Reproduces: nothing\n"
            "Settings:   --preset quick --seed 7 --seeds 2 --rows 2 --shapes ab,cde,f\n");
}

}  // namespace
}  // namespace numsim::experiments
