// A sweep with --until-decided gives the bytes of one process, wherever it was stopped.
#include "tests/sweep/sweep_test.h"

namespace numsim::apps {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Looks at 2, 4, 7 and 12 seeds, four trials per seed; the third one decides.
class Rounds : public SweepTest {
 protected:
  Rounds() { options_ = kUntilDecided; }

  void ExpectTheBytesOfOneProcess() const {
    ExpectResultsOfOneProcess("all");
    EXPECT_EQ(Lines("one/journal/*.jsonl"), 28);
    EXPECT_EQ(Lines("all/shards/*/journal/*.jsonl"), 28) << "run twice, or after the decision";
    const Outcome status = Numsim("sweep status all");
    EXPECT_EQ(status.exit_code, 0);
    EXPECT_THAT(status.out, HasSubstr(", round 3 of at most 4\n"));
    EXPECT_THAT(status.out,
                HasSubstr("12 of 12 trials of this round are finished\n"
                          "look 3: every primary claim is decided\nmerged: all/summary.txt"));
  }
  void SweepAndCompare(const std::string& engine) const {
    const Outcome outcome = Sweep(engine + " --out all");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ExpectTheBytesOfOneProcess();
  }
  // Runs a sweep whose look of round 2 executes these lines of bash, once, at `place` of merge.sh.
  // Expects that this ends the sweep, and that its status has these words. Resumes it, and compares.
  void StopLookAndResume(const std::string& place,
                         const std::string& lines,
                         const std::string& words) const {
    ASSERT_EQ(Sweep("--local 2 --tasks 3 --dry-run --out all").exit_code, 0);
    Edit("all/sweep/merge.sh",
         place,
         "if [ \"$1\" = 2 ] && [ ! -e stopped ]; then\n  touch stopped\n" + lines +
             "  kill -KILL $$\nfi\n" + place);
    EXPECT_NE(Bash("bash all/sweep/launch.sh"), 0);
    const Outcome status = Numsim("sweep status all");
    EXPECT_EQ(status.exit_code, 1);
    EXPECT_THAT(status.out, HasSubstr(words));
    EXPECT_THAT(status.out, HasSubstr("next: numsim sweep resume all\n"));
    const Outcome resumed = Numsim("sweep resume all");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    ExpectTheBytesOfOneProcess();
  }

 private:
  int Lines(const std::string& files) const {
    EXPECT_EQ(Bash("cat " + files + " | wc -l >lines"), 0);
    return std::stoi(Text("lines"));
  }
};

TEST_F(Rounds, OfLocalProcessesGiveTheBytesOfOne) { SweepAndCompare("--local 2 --tasks 3"); }

// The first round has fewer trials than tasks.
TEST_F(Rounds, MayHaveFewerTrialsThanTasks) { SweepAndCompare("--local 2 --tasks 9"); }

TEST_F(Rounds, OfGnuParallelGiveTheBytesOfOneProcess) {
  if (Bash("parallel --version") != 0) GTEST_SKIP() << "GNU parallel is not installed";
  SweepAndCompare("--parallel : --tasks 2");
}

TEST_F(Rounds, OfMpirunGiveTheBytesOfOneProcess) {
  if (Bash("mpirun --version") != 0) GTEST_SKIP() << "mpirun is not installed";
  SweepAndCompare("--mpi 2 --tasks 3");
}

// The script of task 1 kills the program in round 2, once a trial of that round is in its journal, which
// has three lines of the first round.
TEST_F(Rounds, AKilledTaskIsResumedInItsRound) {
  ASSERT_EQ(Sweep("--local 2 --tasks 2 --dry-run --out all").exit_code, 0);
  Edit("all/sweep/task.sh",
       "program=$!\n",
       "program=$!\nif [ \"$name\" = 2-1 ] && [ ! -e killed ]; then\n  touch killed\n"
       "  until [ \"$(wc -l <all/shards/1/journal/1-of-2.jsonl)\" -gt 4 ]; do :; done\n"
       "  kill -KILL \"$program\"\nfi\n");
  EXPECT_NE(Bash("bash all/sweep/launch.sh"), 0);
  EXPECT_THAT(Text("bash.log"), HasSubstr("not all tasks finished: numsim sweep status /"));
  const Outcome status = Numsim("sweep status all");
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.out, HasSubstr(", round 2 of at most 4\n"));
  EXPECT_THAT(status.out, ContainsRegex("0 +4 of 4  finished\n +1 +[1-4] of 4  "));
  EXPECT_THAT(status.out, HasSubstr("look 1: undecided: quantization-variance/"));
  const Outcome resumed = Numsim("sweep resume all");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, ContainsRegex("[01] of 2 tasks of round 2 are unfinished"));
  ExpectTheBytesOfOneProcess();
}

TEST_F(Rounds, ALookKilledBeforeItJudgesIsRepeated) {
  StopLookAndResume(
      "status=0\n", "", "8 of 8 trials of this round are finished\nlook 1: undecided");
}

TEST_F(Rounds, ALookKilledWhileItWritesIsRepeated) {
  StopLookAndResume(
      "[ \"$status\" = 3 ]", "  rm all/manifest.json all/verdicts.csv\n", "round 2 of at most 4\n");
}

TEST_F(Rounds, ALookKilledBeforeItStartsTheNextRoundIsNotRepeated) {
  StopLookAndResume(
      "[ \"$status\" = 3 ]", "", "0 of 12 trials of this round are finished\nlook 2: undecided");
}

TEST_F(Rounds, ResultsAndJournalsOfAnotherSweepAreRefused) {
  ASSERT_EQ(Sweep("--local 2 --tasks 2 --dry-run --out all").exit_code, 0);
  EXPECT_THAT(Numsim("sweep status all").out, HasSubstr("round 1 of at most 4"));
  ASSERT_EQ(Bash("bash all/sweep/task.sh 0 1"), 0) << Text("bash.log");
  EXPECT_THAT(Numsim("sweep status all").out,
              ContainsRegex("0 +4 of 4  finished\n +1 +0 of 4  not"));
  ASSERT_EQ(Bash("cp all/shards/0/journal/0-of-2.jsonl journal && mkdir -p all/shards/1/journal && "
                 "cp journal all/shards/1/journal/1-of-2.jsonl"),
            0);
  EXPECT_THAT(Numsim("sweep status all").err,
              ContainsRegex("holds trial [0-9]+, which is not of task 1"));
  ASSERT_EQ(Bash("rm -r all/shards/1"), 0);
  std::ofstream(Directory() / "all/manifest.json") << "{\"outputs\": [], \"seeds\": [0, 1, 2]}";
  EXPECT_THAT(Numsim("sweep status all").err,
              HasSubstr("has results of 3 seeds, which is no look"));
  ASSERT_EQ(Bash("rm all/manifest.json"), 0);
  Edit("all/sweep/plan.json", "    20\n", "    19,\n    1\n");
  const Outcome other = Numsim("sweep status all");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(
      other.err,
      HasSubstr("all/sweep/settings.json: are settings of another sweep than all/sweep/plan.json"));
}

}  // namespace
}  // namespace numsim::apps
