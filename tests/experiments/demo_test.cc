#include "experiments/runner/demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

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
    EXPECT_TRUE(HasLine("  " + (out / "summary.txt").string()));
  }
  EXPECT_EQ(
      std::count(lines_.begin(), lines_.end(), "  exact: holds   positive: Every sum is positive."),
      2);
  const std::filesystem::path figure = Directory("demo") / "b" / "sums.svg";
  EXPECT_EQ(HasLine("  " + figure.string()), std::filesystem::exists(figure));
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
  EXPECT_EQ(LinesOf("  exact: holds").size(), 1u);
}

TEST_F(Demo, ClaimsHaveTheirNamesAndSayWhetherTheyAreExploratory) {
  Experiment experiment = WithDemo("a");
  experiment.claims.clear();
  ClaimSpec claim;
  claim.kind = ClaimKind::kExact;
  claim.statement = "The same words.";
  claim.evidence = [](const Settings&, const Tables&) { return Evidence{.exact = true}; };
  for (const bool primary : {true, false}) {
    claim.id = primary ? "a/one" : "a/two";
    claim.primary = primary;
    experiment.claims.push_back(claim);
  }
  claim.id = "a/three";
  claim.evidence = [](const Settings&, const Tables&) { return NotTestedBecause("made up"); };
  experiment.claims.push_back(claim);
  RunDemo({experiment}, Options());
  EXPECT_EQ(LinesOf("  exact"),
            (std::vector<std::string>{"  exact: holds   one: The same words.",
                                      "  exact: holds   two (exploratory): The same words."}));
  EXPECT_TRUE(LinesOf("  not tested").empty());
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

TEST(ClaimLine, IsCutAtAWord) {
  EXPECT_EQ(ClaimLine(Verdict::kContradicted, "A claim."), "contradicted   A claim.");
  std::string words;
  while (words.size() < 200) words += "word ";
  const std::string line = ClaimLine(Verdict::kSupported, words);
  EXPECT_LE(line.size(), 100u);
  EXPECT_TRUE(line.starts_with("supported      word word ")) << line;
  EXPECT_TRUE(line.ends_with(" word ...")) << line;
}

}  // namespace
}  // namespace numsim::experiments
