// Each engine gives the bytes of one process, also after a task was killed.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/sweep/sweep_test.h"

namespace numsim::apps {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Engines : public SweepTest {
 protected:
  void RunAndCompare(const std::string& engine, const std::string& out = "all") const {
    const Outcome outcome = Sweep(engine + " --out " + out);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err << Text("bash.log");
    // Silence for less than two seconds, then the number of finished trials.
    EXPECT_THAT(outcome.err, AnyOf("", ContainsRegex("^[0-9]+ of 24 trials are finished")));
    ExpectResultsOfOneProcess(out);
    const Outcome status = Numsim("sweep status " + out);
    EXPECT_EQ(status.exit_code, 0);
    EXPECT_THAT(status.out,
                HasSubstr("24 of 24 trials are finished\nmerged: " + out + "/summary.txt"));
  }
};

TEST_F(Engines, LocalProcessesGiveTheBytesOfOne) { RunAndCompare("--local 2 --tasks 5"); }

// In a command, xargs and GNU parallel replace such braces.
TEST_F(Engines, TakeAPathWithBraces) {
  const std::string out = "a{}b/{#}{.}'$x";
  RunAndCompare("--local 2 --tasks 2", out);
  std::filesystem::remove_all(Directory() / "a{}b");
  if (Bash("parallel --version") == 0) RunAndCompare("--parallel : --tasks 2", out);
  std::filesystem::remove_all(Directory() / "a{}b");
  if (Bash("mpirun --version") == 0) RunAndCompare("--mpi 2 --tasks 2", out);
}

TEST_F(Engines, EndWith2IfAProgramIsMissing) {
  ASSERT_EQ(Bash("ln -s /bin/bash programs/bash"), 0);
  for (const auto& [engine, program] : {std::pair{"--local 2", "xargs"},
                                        {"--parallel :", "parallel"},
                                        {"--mpi 2", "mpirun"},
                                        {"--slurm", "sbatch"}}) {
    const Outcome outcome = Numsim(Words("sweep " + options_ + " --tasks 2 --out all " + engine),
                                   {{"PATH", (Directory() / "programs").string()}});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, program + std::string(": not found on PATH; this sweep needs it\n"));
  }
  EXPECT_EQ(Sweep("--local 2 --tasks 2 --out all").exit_code, 0) << "nothing had begun";
}

// With 2 and a line, whatever the engine ends with.
TEST_F(Engines, EndWith2IfATaskFails) {
  std::vector<std::string> engines = {"--local 2"};
  if (Bash("parallel --version") == 0) engines.push_back("--parallel :");
  if (Bash("mpirun --version") == 0) engines.push_back("--mpi 2");
  for (const std::string& engine : engines) {
    std::filesystem::remove_all(Directory() / "all");
    ASSERT_EQ(Sweep(engine + " --tasks 2 --dry-run --out all").exit_code, 0);
    std::ofstream(Directory() / "all/sweep/task.sh") << "exit 7\n";
    EXPECT_EQ(Bash("bash all/sweep/launch.sh"), 2) << engine;
    EXPECT_TRUE(Text("bash.log")
                    .ends_with("not all tasks finished: numsim sweep status " +
                               (std::filesystem::canonical(Directory()) / "all").string() + "\n"))
        << Text("bash.log");
    EXPECT_EQ(Numsim("sweep resume all").exit_code, 2) << engine;
  }
}

// Task 0 waits until the sweep has said how far it is; then Ctrl-C goes to all its processes.
TEST_F(Engines, ASweepSaysHowFarItIsAndHowToResumeIt) {
  ASSERT_EQ(Sweep("--local 1 --tasks 4 --dry-run --out all").exit_code, 0);
  Edit("all/sweep/task.sh",
       "signalled=yes\nwhile",
       "[ \"$task\" = 0 ] || sleep 60\nsignalled=yes\nwhile");
  // A shell that was itself started in the background ignores Ctrl-C, and so would all that it starts.
  std::ofstream(Directory() / "interrupt.sh")
      << "set -m\nenv --default-signal=INT bash all/sweep/launch.sh 2>said & launch=$!\n"
         "until grep -q finished said; do sleep 0.1; done\nkill -INT -$launch\nwait $launch\n";
  EXPECT_EQ(Bash("bash interrupt.sh"), 130);
  EXPECT_THAT(Text("said"), ContainsRegex("^[0-9]+ of 24 trials are finished\n"));
  EXPECT_THAT(Text("said"), HasSubstr("to resume: numsim sweep resume "));
}

TEST_F(Engines, GnuParallelGivesTheBytesOfOneProcess) {
  if (Bash("parallel --version") != 0) GTEST_SKIP() << "GNU parallel is not installed";
  RunAndCompare("--parallel : --tasks 4");
}

TEST_F(Engines, RanksOfMpirunGiveTheBytesOfOneProcess) {
  if (Bash("mpirun --version") != 0) GTEST_SKIP() << "mpirun is not installed";
  RunAndCompare("--mpi 2 --tasks 5");
}

// Task 0 lasts until all others have run: with fixed shares of the tasks it would wait in vain.
TEST_F(Engines, RanksOfMpirunTakeTasksWhileAnotherIsBusy) {
  if (Bash("mpirun --version") != 0) GTEST_SKIP() << "mpirun is not installed";
  ASSERT_EQ(Sweep("--mpi 2 --tasks 6 --dry-run --out all").exit_code, 0);
  Edit("all/sweep/task.sh",
       "program=$!\n",
       "program=$!\nfor ((i = 0; i < 1000 && task == 0; i++)); do\n"
       "  [ ! -e \"$sweep/exit/5\" ] || break\n"
       "  sleep 0.01\ndone\n");
  EXPECT_EQ(Bash("bash all/sweep/launch.sh"), 0) << Text("bash.log");
  ExpectResultsOfOneProcess("all");
  const std::string busy = Text("all/sweep/taken/0");
  for (int task = 1; task < 6; ++task) {
    EXPECT_NE(Text("all/sweep/taken/" + std::to_string(task)), busy) << task;
  }
}

// The first rank that runs task 0 dies with it, by SIGKILL.
TEST_F(Engines, ADeadRankOfMpirunDoesNotEndTheOthersAndItsTaskIsResumed) {
  if (Bash("mpirun --version") != 0) GTEST_SKIP() << "mpirun is not installed";
  ASSERT_EQ(Sweep("--mpi 2 --tasks 6 --dry-run --out all").exit_code, 0);
  Edit("all/sweep/task.sh",
       "program=$!\n",
       "program=$!\nif [ \"$task\" = 0 ] && [ ! -e \"$sweep/killed\" ]; then\n"
       "  touch \"$sweep/killed\"\n  kill -KILL \"$program\" \"$PPID\" $$\nfi\n");
  EXPECT_EQ(Bash("bash all/sweep/launch.sh"), 2);
  EXPECT_THAT(Text("bash.log"), HasSubstr("not all tasks finished: numsim sweep status /"));
  const Outcome status = Numsim("sweep status all");
  EXPECT_THAT(status.out,
              ContainsRegex("     0           . of 4  (running, or killed|not started)"));
  for (int task = 1; task < 6; ++task) {
    EXPECT_THAT(status.out, HasSubstr(std::to_string(task) + "           4 of 4  finished"));
  }
  const Outcome resumed = Numsim("sweep resume all");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("1 of 6 tasks are unfinished"));
  ExpectResultsOfOneProcess("all");
}

// A sweep, and one in rounds whose first tasks that it can catch are stopped by TERM and put back into
// the queue, where Slurm would hold them for two minutes. Two seconds are enough: a job that starts
// within the second in which its former run ended is refused, since the credential of that run is
// revoked.
TEST_F(Engines, SlurmGivesTheBytesOfOneProcessAlsoAfterARequeue) {
  const char* const sources = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(sources, nullptr);
  const std::string cluster = std::string("'") + sources + "/tests/sweep/one_node_slurm'";
  const int started = Bash(cluster + " start cluster");
  if (started == 3) GTEST_SKIP() << Text("bash.log");
  ASSERT_EQ(started, 0) << Text("bash.log");
  const std::string conf = (Directory() / "cluster/slurm.conf").string();
  const Environment slurm = {{"SLURM_CONF", conf}};
  const Outcome whole =
      Numsim(Words("sweep " + options_ + " --slurm --tasks 4 --mem 100M --out all"), slurm);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  const std::string rounds =
      "sweep " + std::string(kUntilDecided) + " --slurm --tasks 2 --out rounds";
  ASSERT_EQ(Numsim(Words(rounds + " --dry-run"), slurm).exit_code, 0);
  Edit("rounds/sweep/task.sh",
       "program=$!\n",
       "program=$!\nowner=rounds/shards/$task/journal/$task-of-2.owner\n"
       "[ -e stopped ] || until [ -e $owner ]; do kill -0 $program || break; done\n");
  Edit("rounds/sweep/task.sh",
       "signalled=yes\nwhile",
       "[ -e stopped ] || kill -TERM $$\nsignalled=yes\nwhile");
  Edit("rounds/sweep/task.sh", "  scontrol requeue", "  touch stopped\n  scontrol requeue");
  std::ofstream(Directory() / "release")
      << "squeue -h -r -t PD -o '%i %r' | grep BeginTime | while read -r job reason; do\n"
         "  [ -e released-$job ] || scontrol update JobId=$job StartTime=now+2\n"
         "  touch released-$job\n"
         "done\n";
  const std::string with_slurm = "SLURM_CONF='" + conf + "' bash ";
  EXPECT_EQ(Bash(with_slurm + "rounds/sweep/launch.sh"), 0) << Text("bash.log");
  for (int i = 0; i < 300 && (Numsim("sweep status rounds").exit_code != 0 ||
                              Numsim("sweep status all").exit_code != 0);
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    Bash(with_slurm + "release");
  }
  if (Numsim("sweep status rounds").exit_code != 0) {
    Bash("SLURM_CONF='" + conf + "' squeue; tail -n 60 cluster/slurmctld.log cluster/slurmd.log");
    ADD_FAILURE() << Text("bash.log");
  }
  EXPECT_EQ(Bash(cluster + " stop cluster"), 0);
  EXPECT_EQ(Bash("ls stopped && grep interrupted rounds/sweep/logs/*"), 0);
  const Outcome status = Numsim("sweep status rounds");
  EXPECT_THAT(status.out, HasSubstr("round 3 of at most 4\n"));
  EXPECT_THAT(status.out, HasSubstr("look 3: every primary claim is decided\nmerged: rounds/"));
  ExpectResultsOfOneProcess("all");
  options_ = kUntilDecided;
  ExpectResultsOfOneProcess("rounds", "one-rounds");
}

// The script of task 1 kills the program, the first time that it runs, once a trial is in its journal.
// Trials are long enough for others to be left then.
TEST_F(Engines, AKilledTaskIsSeenAndItsUnfinishedTrialsAreResumed) {
  options_ =
      "quantization-variance --distributions normal,laplace --formats e4m3fn --pairs 4000 "
      "--k-high 512 --seeds 3";
  ASSERT_EQ(Sweep("--local 2 --tasks 2 --dry-run --out all").exit_code, 0);
  Edit("all/sweep/task.sh",
       "program=$!\n",
       "program=$!\nif [ \"$task\" = 1 ] && [ ! -e \"$sweep/killed\" ]; then\n"
       "  touch \"$sweep/killed\"\n"
       "  until [ -s all/shards/1/journal/1-of-2.jsonl ]; do :; done\n"
       "  kill -KILL \"$program\"\nfi\n");
  EXPECT_EQ(Bash("bash all/sweep/launch.sh"), 2);
  EXPECT_THAT(Text("bash.log"), HasSubstr("not all tasks finished: numsim sweep status /"));
  EXPECT_FALSE(std::filesystem::exists(Directory() / "all/manifest.json"));
  const Outcome status = Numsim("sweep status all");
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.out, HasSubstr("12 of 12  finished"));
  EXPECT_THAT(status.out, ContainsRegex(" ([1-9]|1[01]) of 12  ended by signal 9"));
  EXPECT_THAT(status.out, HasSubstr("next: numsim sweep resume all\n"));
  const std::string journal = Text("all/shards/0/journal/0-of-2.jsonl");
  const Outcome resumed = Numsim("sweep resume all");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("1 of 2 tasks are unfinished"));
  EXPECT_EQ(Text("all/shards/0/journal/0-of-2.jsonl"), journal);
  ExpectResultsOfOneProcess("all");
}

}  // namespace
}  // namespace numsim::apps
