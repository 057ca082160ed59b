// The text of summary.txt.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "experiments/core/runner.h"
#include "experiments/core/settings.h"
#include "tests/experiments/made_up_experiment.h"

namespace numsim::experiments {
namespace {

std::string TextOf(const Summary& summary) {
  const Experiment experiment = MadeUpExperiment();
  return SummaryText(experiment, MakeSettings(experiment, "quick", 7, 2, {}), summary);
}

TEST(SummaryText, ListsClaimMeasuredVerdictAndNotes) {
  const Summary summary = {
      .claims = {{"First claim.", "One.", "holds"}, {"Second claim.", "Two.", "does not hold"}},
      .notes = "A note.\n\n  a table, as it is\nAnother note.\n"};
  EXPECT_EQ(TextOf(summary),
            "made_up: sums of made-up values\n"
            "Reproduces: nothing\n"
            "Settings:   --preset quick --seed 7 --seeds 2 --rows 2 --shapes ab,cde,f\n"
            "\n"
            "Claim:    First claim.\n"
            "Measured: One.\n"
            "Verdict:  holds\n"
            "\n"
            "Claim:    Second claim.\n"
            "Measured: Two.\n"
            "Verdict:  does not hold\n"
            "\n"
            "A note.\n"
            "\n"
            "  a table, as it is\n"
            "Another note.\n");
}

TEST(SummaryText, WrapsAt88CharactersBelowTheFirstWord) {
  std::string long_text;
  for (int i = 0; i < 60; ++i) long_text += "w\xC3\xB6rd" + std::to_string(i) + " ";
  const std::string text = TextOf({.claims = {{long_text, long_text, "holds in part"}},
                                   .notes = long_text + std::string(120, 'x')});
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
  EXPECT_EQ(TextOf({}),
            "made_up: sums of made-up values\n"
            "Reproduces: nothing\n"
            "Settings:   --preset quick --seed 7 --seeds 2 --rows 2 --shapes ab,cde,f\n");
}

TEST(SummaryTextDeathTest, UnknownVerdictIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(TextOf({.claims = {{"a", "b", "maybe"}}, .notes = ""}), "verdict \"maybe\"");
}

}  // namespace
}  // namespace numsim::experiments
