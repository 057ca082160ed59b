#include "experiments/runner/demo.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/runner/published.h"
#include "experiments/runner/wrapped_text.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

// MadeUpExperiment under another name, with a preset for the demo.
Experiment WithDemo(const std::string& name) {
  Experiment experiment = MadeUpExperiment();
  experiment.name = name;
  experiment.options[1].demo = "1";
  experiment.presets.push_back({.name = "demo", .seeds = 2, .seconds = 60});
  return experiment;
}

class Demo : public RunFixture {
 protected:
  DemoOptions Options() {
    DemoOptions options;
    options.out = Directory("demo");
    options.command = {"numsim", "demo"};
    options.print = [this](const std::string& line) { lines_.push_back(line); };
    return options;
  }
  bool HasLine(const std::string& line) const {
    return std::find(lines_.begin(), lines_.end(), line) != lines_.end();
  }
  // The lines that begin so.
  std::vector<std::string> LinesOf(const std::string& start) const {
    std::vector<std::string> found;
    for (const std::string& line : lines_) {
      if (line.starts_with(start)) found.push_back(line);
    }
    return found;
  }

  std::vector<std::string> lines_;
};

TEST_F(Demo, RunsWhatHasThePresetAndShowsVerdictsAndFigures) {
  Experiment with_figure = WithDemo("b");
  with_figure.figures = MadeUpFigures;
  RunDemo({WithDemo("a"), MadeUpExperiment(), with_figure}, Options());
  EXPECT_EQ(lines_.front(), "2 experiments, about 2:00 on two cores");
  EXPECT_FALSE(std::filesystem::exists(Directory("demo") / "made_up"));
  for (const char* const name : {"a", "b"}) {
    const std::filesystem::path out = Directory("demo") / name;
    EXPECT_EQ(ReadSettings(out / "settings.json").settings.preset, "demo");
    EXPECT_EQ(ReadSettings(out / "settings.json").settings.seeds, 2);
    EXPECT_EQ(ReadSettings(out / "settings.json").settings.Get("rows"), "1");
    EXPECT_TRUE(HasLine(std::string(name) + ": sums of made-up values"));
    EXPECT_TRUE(HasLine("  all numbers: " + (out / "summary.txt").string()));
  }
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "  positive: Every sum is positive."), 2);
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "    here: exact: holds (mechanism)"), 2);
  const std::filesystem::path figure = Directory("demo") / "b" / "sums.svg";
  EXPECT_EQ(HasLine("The figure to open first: " + figure.string()),
            std::filesystem::exists(figure));
}

TEST_F(Demo, SaysAfterEachExperimentHowMuchTimeIsLeft) {
  RunDemo({WithDemo("a"), WithDemo("b")}, Options());
  ASSERT_EQ(LinesOf("a  ").size(), 1u);
  EXPECT_THAT(LinesOf("a  ")[0], HasSubstr(" s, about "));
  EXPECT_TRUE(LinesOf("a  ")[0].ends_with(" left")) << LinesOf("a  ")[0];
  ASSERT_EQ(LinesOf("b  ").size(), 1u);
  EXPECT_TRUE(LinesOf("b  ")[0].ends_with(" s")) << LinesOf("b  ")[0];
}

TEST_F(Demo, KeepsTrialsThatAreFinished) {
  Experiment experiment = WithDemo("a");
  experiment.run = Counting().run;
  RunDemo({experiment}, Options());
  const int calls = calls_;
  EXPECT_GT(calls, 0);
  lines_.clear();
  RunDemo({experiment}, Options());
  EXPECT_EQ(calls_, calls);
  ASSERT_EQ(LinesOf("a  ").size(), 1u);
  EXPECT_TRUE(LinesOf("a  ")[0].ends_with(" s, 6 of 6 trials were already finished"))
      << LinesOf("a  ")[0];
  EXPECT_EQ(LinesOf("    here: exact: holds (mechanism)").size(), 1u);
}

// An exact claim that holds, with or without being primary.
ClaimSpec ExactClaim(const std::string& id, bool primary, const std::string& statement) {
  ClaimSpec claim;
  claim.id = id;
  claim.kind = ClaimKind::kExact;
  claim.primary = primary;
  claim.statement = statement;
  claim.evidence = [](const Settings&, const Tables&) { return Evidence{.exact = true}; };
  return claim;
}

TEST_F(Demo, PrimaryClaimsComeFirstAndUntestedOnesAreLeftOut) {
  Experiment experiment = WithDemo("a");
  experiment.claims = {ExactClaim("a/two", false, "The same words."),
                       ExactClaim("a/three", true, "Not shown."),
                       ExactClaim("a/one", true, "The same words.")};
  experiment.claims[1].evidence = [](const Settings&, const Tables&) {
    return NotTestedBecause("made up");
  };
  RunDemo({experiment}, Options());
  const auto first = std::find(lines_.begin(), lines_.end(), "  one: The same words.");
  ASSERT_GE(lines_.end() - first, 4);
  EXPECT_EQ(first[1], "    here: exact: holds (mechanism)");
  EXPECT_EQ(first[2], "  two (exploratory): The same words.");
  EXPECT_EQ(first[3], "    here: exact: holds (mechanism)");
  EXPECT_TRUE(LinesOf("  three").empty());
}

TEST_F(Demo, ShowsAtMostFiveClaimsInWholeSentences) {
  std::string statement;
  while (statement.size() < 300) statement += "word ";
  statement += "end.";
  Experiment experiment = WithDemo("a");
  experiment.claims.clear();
  for (int i = 0; i < 7; ++i) {
    experiment.claims.push_back(ExactClaim(fmt::format("a/claim-{}", i), true, statement));
  }
  RunDemo({experiment}, Options());
  EXPECT_EQ(LinesOf("  claim-").size(), 5u);
  EXPECT_EQ(std::count_if(lines_.begin(),
                          lines_.end(),
                          [](const std::string& line) { return line.ends_with(" end."); }),
            5);
  for (const std::string& line : LinesOf("  word")) EXPECT_LE(line.size(), 88u);
  EXPECT_EQ(LinesOf("  2 more claims and all numbers: ").size(), 1u);
}

// The claim is one of the library's, whose published verdict stands beside the one of this run.
TEST_F(Demo, ShowsThePublishedVerdictWithItsScaleAndPage) {
  const PublishedVerdict published = QuotedVerdict("moment-formats/v-e4m3-fails");
  ASSERT_FALSE(published.page.empty());
  Experiment experiment = WithDemo("moment-formats");
  experiment.claims = {ExactClaim("moment-formats/v-e4m3-fails", true, "Made up.")};
  RunDemo({experiment}, Options());
  std::string text;
  for (const std::string& line : lines_)
    text += line.substr(std::min<size_t>(4, line.size())) + " ";
  EXPECT_THAT(text,
              HasSubstr(fmt::format("here: exact: holds (mechanism), published: {} ({}; {})",
                                    published.verdict,
                                    published.Size(),
                                    published.page)));
}

TEST_F(Demo, ShowsNoProgressUnlessAsked) {
  testing::internal::CaptureStderr();
  RunDemo({WithDemo("a")}, Options());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Demo, TheProgressLineBeginsWithTheTimeLeft) {
  DemoOptions options = Options();
  options.progress = true;
  testing::internal::CaptureStderr();
  RunDemo({WithDemo("a")}, options);
  const std::string progress = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(progress.starts_with("\r1:")) << progress;
  EXPECT_THAT(progress, HasSubstr(" left  a [0/6] "));
  EXPECT_THAT(progress, HasSubstr("\r0:00 left  a [6/6] "));
  EXPECT_TRUE(progress.ends_with("\r\x1b[K")) << progress;  // makes room for the line about a
}

TEST_F(Demo, NoExperimentWithThePresetIsAnError) {
  EXPECT_EQ(ErrorOf([this] { RunDemo({MadeUpExperiment()}, Options()); }),
            "no experiment has the preset demo");
}

TEST(DemoPresets, TakeAtMostFourMinutes) {
  double seconds = 0;
  for (const Experiment& experiment : AllExperiments()) {
    for (const Preset& preset : experiment.presets) {
      if (preset.name != kDemoPreset) continue;
      EXPECT_GT(preset.seconds, 0) << experiment.name;
      seconds += preset.seconds;
    }
  }
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, 4 * 60);
}

// A reader decides by these times whether to wait.
TEST(QuickPresets, HaveATime) {
  for (const Experiment& experiment : AllExperiments()) {
    EXPECT_GT(FindPreset(experiment, "quick").seconds, 0) << experiment.name;
  }
}

TEST(WrappedLines, BreakAtBlanksAndKeepAllWords) {
  EXPECT_EQ(WrappedLines(2, "A claim."), std::vector<std::string>{"  A claim."});
  std::string words;
  for (int i = 0; i < 60; ++i) words += fmt::format("word{} ", i);
  std::string joined;
  const auto lines = WrappedLines(3, words);
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 88u);
    EXPECT_TRUE(line.starts_with("   word")) << line;
    joined += line.substr(3) + " ";
  }
  EXPECT_GT(lines.size(), 4u);
  EXPECT_EQ(joined, words);
  const std::string path(100, 'p');
  EXPECT_EQ(WrappedLines(2, "a " + path + " b"),
            (std::vector<std::string>{"  a", "  " + path, "  b"}));
}

}  // namespace
}  // namespace numsim::experiments
