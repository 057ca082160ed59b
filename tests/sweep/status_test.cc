// The states of tasks that `numsim sweep status` tells apart.
#include "experiments/sweep/status.h"

#include "tests/sweep/sweep_test.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

class Status : public SweepTest {};

TEST_F(Status, NamesTheStateOfEachTask) {
  ASSERT_EQ(Sweep("--local 1 --tasks 6 --dry-run --out all").exit_code, 0);
  ASSERT_EQ(Bash("bash all/sweep/task.sh 0"), 0) << Text("all/sweep/logs/0.log");
  std::ofstream(Directory() / "all/sweep/logs/2.log");
  std::ofstream(Directory() / "all/sweep/exit/3") << "75\n";
  std::ofstream(Directory() / "all/sweep/exit/4") << "2\n";
  std::ofstream(Directory() / "all/sweep/exit/5") << "137\n";
  const Outcome status = Numsim("sweep status all");
  EXPECT_EQ(status.exit_code, 1);
  const std::vector<std::string> lines = status.Lines();
  ASSERT_EQ(lines.size(), 10u) << status.out;
  EXPECT_EQ(lines[0], "quantization-variance by local");
  EXPECT_THAT(lines[2], HasSubstr("0           4 of 4  finished"));
  EXPECT_THAT(lines[3], HasSubstr("1           0 of 4  not started"));
  EXPECT_THAT(lines[4], HasSubstr("2           0 of 4  running, or killed"));
  EXPECT_THAT(lines[5], HasSubstr("3           0 of 4  stopped by a signal"));
  EXPECT_THAT(lines[6], HasSubstr("4           0 of 4  failed with exit code 2"));
  EXPECT_THAT(lines[7], HasSubstr("5           0 of 4  ended by signal 9"));
  EXPECT_EQ(lines[8], "4 of 24 trials are finished");
  EXPECT_EQ(lines[9], "next: numsim sweep resume all");
}

TEST_F(Status, ResumeSaysWhatItWouldRun) {
  ASSERT_EQ(Sweep("--local 1 --tasks 3 --dry-run --out all").exit_code, 0);
  ASSERT_EQ(Bash("bash all/sweep/task.sh 1"), 0) << Text("all/sweep/logs/1.log");
  const Outcome some = Numsim("sweep resume all --dry-run");
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_THAT(some.out, HasSubstr("2 of 3 tasks are unfinished\n"));
  EXPECT_THAT(some.out, HasSubstr("all/sweep/launch.sh 0 2\n"));
  ASSERT_EQ(Bash(some.Lines().back()), 0) << Text("bash.log");
  ExpectResultsOfOneProcess("all");
  const Outcome none = Numsim("sweep resume all --dry-run");
  EXPECT_THAT(none.out, HasSubstr("all/sweep/merge.sh\n"));
}

// As a full disk or a loss of power leaves it.
TEST_F(Status, AnExitCodeThatIsEmptyOrTornCountsAsKilled) {
  ASSERT_EQ(Sweep("--local 1 --tasks 2 --dry-run --out all").exit_code, 0);
  std::ofstream(Directory() / "all/sweep/logs/1.log");
  for (const std::string& text : {std::string(),
                                  std::string("1"),
                                  std::string("x\n"),
                                  std::string("256\n"),
                                  std::string("-1\n"),
                                  std::string("1 2\n"),
                                  std::string("1\n2\n"),
                                  std::string(3, '\0')}) {
    std::ofstream(Directory() / "all/sweep/exit/1") << text;
    const Outcome outcome = Numsim("sweep status all");
    EXPECT_EQ(outcome.exit_code, 1) << text;
    EXPECT_THAT(outcome.out, HasSubstr("1          0 of 12  running, or killed\n")) << text;
  }
  EXPECT_EQ(Numsim("sweep resume all").exit_code, 0);
  ExpectResultsOfOneProcess("all");
  std::ofstream(Directory() / "all/sweep/exit/1") << "255\n";
  EXPECT_EQ(Numsim("sweep status all").exit_code, 0);
}

// As on a full disk; a folder is in the way of the file.
TEST_F(Status, AnExitCodeThatCannotBeWrittenLeavesNoFile) {
  ASSERT_EQ(Sweep("--local 1 --tasks 2 --dry-run --out all").exit_code, 0);
  std::filesystem::create_directory(Directory() / "all/sweep/exit/1.new");
  EXPECT_EQ(Bash("bash all/sweep/task.sh 1"), 0) << Text("all/sweep/logs/1.log");
  EXPECT_FALSE(std::filesystem::exists(Directory() / "all/sweep/exit/1"));
  EXPECT_THAT(Numsim("sweep status all").out, HasSubstr("1         12 of 12  finished\n"));
}

// More tasks than fit into arguments.
TEST_F(Status, ResumeOfManyTasksWritesAListOfThem) {
  options_ =
      "quantization-variance --distributions normal --formats bf16 --granularities row "
      "--roundings rne --pairs 4 --k-low 64 --k-high 64 --tensor-rows 1 --seeds 1002";
  ASSERT_EQ(Sweep("--local 2 --tasks 1002 --dry-run --out all").exit_code, 0);
  std::ofstream(Directory() / "all/sweep/task.sh") << "echo \"$1\" >>ran\n";
  std::ofstream(Directory() / "all/sweep/merge.sh");
  const Outcome resumed = Numsim("sweep resume all --dry-run");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("1002 of 1002 tasks are unfinished\n"));
  EXPECT_TRUE(resumed.Lines().back().ends_with("all/sweep/unfinished")) << resumed.out;
  EXPECT_EQ(Bash("cmp all/sweep/unfinished <(seq 0 1001)"), 0);
  std::ofstream(Directory() / "all/sweep/unfinished") << "7\n1001\n";
  EXPECT_EQ(Bash(resumed.Lines().back()), 0) << Text("bash.log");
  EXPECT_EQ(Bash("sort -n all/sweep/ran"), 0);
  EXPECT_EQ(Text("bash.log"), "7\n1001\n");
}

}  // namespace
}  // namespace numsim::apps
