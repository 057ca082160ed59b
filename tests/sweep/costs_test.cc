// Sweeps that are cut by the seconds of an earlier run.
#include <fmt/format.h>

#include "tests/sweep/sweep_test.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

// The directory `earlier` has results of the small experiment. Trials with one distribution took the one
// time, those with the other the other.
class Costs : public SweepTest {
 protected:
  void RunEarlier(const std::string& normal, const std::string& laplace) {
    ASSERT_EQ(Numsim(Words("run " + options_ + " --out earlier")).exit_code, 0);
    SetSeconds("normal", normal);
    SetSeconds("laplace", laplace);
  }

 private:
  // The digest of a line does not cover its seconds.
  void SetSeconds(const std::string& distribution, const std::string& seconds) const {
    ASSERT_EQ(
        Bash(fmt::format(
            "sed -i -E '/label.{{3}}{}/ s/(seconds.:)[0-9.e-]+/\\1{}/' earlier/journal/0-of-1.jsonl",
            distribution,
            seconds)),
        0);
  }
};

TEST_F(Costs, ShareTrialsOutAndGiveTheBytesOfOneProcess) {
  RunEarlier("10", "1");
  const Outcome outcome = Sweep("--costs earlier --local 2 --tasks 6 --out all");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ExpectResultsOfOneProcess("all");
  // 12 trials of ten seconds and 12 of one second in six tasks: two of each.
  const std::string costs = Text("all/sweep/costs.csv");
  EXPECT_THAT(costs, HasSubstr(",10\n"));
  EXPECT_THAT(costs, HasSubstr(",1\n"));
  EXPECT_EQ(Bash("test $(cat all/shards/*/journal/*.jsonl | wc -l) = 24"), 0);
  for (int task = 0; task < 6; ++task) {
    EXPECT_EQ(Bash(fmt::format("test $(grep -c laplace all/shards/{}/journal/*.jsonl) = 2", task)),
              0)
        << task;
  }
  EXPECT_EQ(Numsim("sweep status all").exit_code, 0);
  EXPECT_EQ(Numsim("sweep resume all").exit_code, 0);
  ASSERT_EQ(Bash("sed -i 's/,10$/,11/' all/sweep/costs.csv"), 0);
  RunEarlier("10", "2");
  EXPECT_THAT(Sweep("--costs earlier --local 2 --tasks 6 --out all").err,
              HasSubstr("holds tasks of another sweep"));
}

TEST_F(Costs, OfOneTrialThatIsAsLongAsTheOthersGiveItATaskOfItsOwn) {
  options_ =
      "quantization-variance --distributions normal,laplace --formats e4m3fn --pairs 8 --k-high 512 "
      "--seeds 1";
  RunEarlier("0.01", "0.01");
  ASSERT_EQ(Bash("sed -i -E '1 s/(seconds.:)[0-9.e-]+/\\15/' earlier/journal/0-of-1.jsonl"), 0);
  ASSERT_EQ(Sweep("--costs earlier --local 2 --tasks 2 --out all").exit_code, 0);
  const Outcome status = Numsim("sweep status all");
  EXPECT_THAT(status.out, HasSubstr("     0           1 of 1  finished\n"));
  EXPECT_THAT(status.out, HasSubstr("     1           7 of 7  finished\n"));
  ExpectResultsOfOneProcess("all");
}

TEST_F(Costs, GiveTheNumberOfTasksAlsoForTrialsThatTheEarlierRunDoesNotHave) {
  RunEarlier("100", "100");
  const Outcome same = Sweep("--costs earlier --local 1 --dry-run --out same");
  EXPECT_THAT(
      same.out,
      HasSubstr("estimate, from the seconds that trials like 24 of these 24 took, one after the "
                "other: 40 min in all, 5 min per task\n24 trials in 8 tasks;"));
  // Three more seeds of the same, and another distribution of the same costs.
  options_ =
      "quantization-variance --distributions normal,laplace,uniform --formats e4m3fn --pairs 8 "
      "--k-high 512 --seeds 6";
  const Outcome more = Sweep("--costs earlier --local 1 --dry-run --out more");
  EXPECT_THAT(more.out, HasSubstr("trials like 48 of these "));
}

TEST_F(Costs, OfARoundAreSharedOutWithinIt) {
  options_ = kUntilDecided;
  RunEarlier("100", "100");
  const Outcome outcome = Sweep("--costs earlier --local 2 --tasks 3 --out all");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ExpectResultsOfOneProcess("all");
  EXPECT_EQ(Bash("test $(cat all/shards/*/journal/*.jsonl | wc -l) = 28"), 0);
}

TEST_F(Costs, OfOtherOrWithoutSecondsAreRefused) {
  RunEarlier("1", "1");
  const std::pair<const char*, const char*> cases[] = {
      {"quantization-variance --costs none", "none/settings.json"},
      {"linear-error --costs earlier", "earlier: holds results of quantization-variance"},
  };
  for (const auto& [options, message] : cases) {
    const Outcome outcome =
        Numsim(Words("sweep " + std::string(options) + " --local 2 --dry-run --out all"));
    EXPECT_EQ(outcome.exit_code, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << options;
    EXPECT_FALSE(std::filesystem::exists(Directory() / "all")) << options;
  }
  ASSERT_EQ(Bash("sed -i -E 's/,.seconds.:[0-9.e-]+//' earlier/journal/0-of-1.jsonl"), 0);
  EXPECT_THAT(Sweep("--costs earlier --local 2 --dry-run --out all").err,
              HasSubstr("--costs earlier: holds no finished trial with the seconds that it took"));
}

}  // namespace
}  // namespace numsim::apps
