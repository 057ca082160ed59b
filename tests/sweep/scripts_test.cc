// The scripts and plans that `numsim sweep --dry-run` writes; golden/ENGINE holds them.
#include "experiments/sweep/scripts.h"

#include <cstdlib>

#include "tests/sweep/sweep_test.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

std::filesystem::path Golden() {
  return std::filesystem::path(std::getenv("NUMSIM_SOURCE_DIR")) / "tests/sweep/golden";
}

class Scripts : public SweepTest {
 protected:
  // Returns a text without the paths of this machine.
  std::string Neutral(std::string text) const {
    const std::string here = std::filesystem::canonical(Directory()).string();
    const std::string program = std::filesystem::canonical(std::getenv("NUMSIM_PROGRAM")).string();
    for (const auto& [from, to] :
         {std::pair{program, std::string("/opt/numsim")}, {here, std::string("/home/user")}}) {
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    }
    return text;
  }
  void ExpectGolden(const std::string& engine, const std::string& options) const {
    const Outcome outcome = Sweep(options + " --dry-run --out " + engine);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(Neutral(outcome.out), HasSubstr("bash /home/user/" + engine + "/sweep/launch.sh"));
    EXPECT_FALSE(std::filesystem::exists(Directory() / engine / "shards"));
    std::vector<std::string> files = {"launch.sh", "task.sh", "merge.sh", "plan.json"};
    if (engine.starts_with("mpi")) files.emplace_back("rank.sh");
    for (const std::string& file : files) {
      std::ifstream golden(Golden() / engine / file);
      const std::string expected(std::istreambuf_iterator<char>(golden), {});
      EXPECT_EQ(Neutral(Text(engine + "/sweep/" + file)), expected) << file;
    }
  }
};

TEST_F(Scripts, OfSlurmAreTheGoldenOnes) {
  ExpectGolden("slurm",
               "--slurm --tasks 4 --cpus-per-task 2 --mem 200M --time 0:10:00 --partition main "
               "--account lab");
}
TEST_F(Scripts, OfGnuParallelAreTheGoldenOnes) {
  ExpectGolden("parallel", "--parallel :,node1 --tasks 4");
}
TEST_F(Scripts, OfMpirunAreTheGoldenOnes) { ExpectGolden("mpi", "--mpi 2 --tasks 4"); }
TEST_F(Scripts, OfLocalProcessesAreTheGoldenOnes) { ExpectGolden("local", "--local 2 --tasks 4"); }

// With --until-decided, by rounds.
TEST_F(Scripts, OfRoundsAreTheGoldenOnes) {
  options_ = kUntilDecided;
  ExpectGolden("slurm-rounds", "--slurm --tasks 9 --partition main");
  ExpectGolden("parallel-rounds", "--parallel :,node1 --tasks 4");
  ExpectGolden("mpi-rounds", "--mpi 2 --tasks 4");
  ExpectGolden("local-rounds", "--local 2 --tasks 4");
}

// As in a container: the wrapper sees every command.
TEST_F(Scripts, StartNumsimByTheWrapper) {
  std::ofstream(Directory() / "wrap") << "echo \"$2\" >>wrapped\nexec \"$@\"\n";
  std::vector<std::string> words =
      Words("sweep " + options_ + " --local 1 --tasks 3 --out all --wrapper");
  words.emplace_back("bash wrap");
  const Outcome outcome = Numsim(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Text("wrapped"), "run\nrun\nrun\nmerge\n");
  ExpectResultsOfOneProcess("all");
  words.back() = "bash\nwrap";
  const Outcome wrong = Numsim(words);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("wrapper: expected one line"));
}

TEST_F(Scripts, HaveNoWarningOfShellcheck) {
  if (Bash("shellcheck --version") != 0) GTEST_SKIP() << "shellcheck is not installed";
  EXPECT_EQ(Bash("shellcheck '" + Golden().string() + "'/*/*.sh"), 0) << Text("bash.log");
}

// Two ranks that go through the same 60 tasks at the same time.
TEST_F(Scripts, OfMpirunRunEachTaskOnceHoweverRanksRace) {
  ASSERT_EQ(Sweep("--mpi 2 --tasks 4 --dry-run --out all").exit_code, 0);
  std::filesystem::create_directory(Directory() / "all/sweep/taken");
  std::ofstream(Directory() / "all/sweep/task.sh") << "echo \"$1\" >>../../../ran\n";
  std::ofstream(Directory() / "rank") << "until [ -e begin ]; do :; done\n"
                                         "OMPI_COMM_WORLD_RANK=$1 bash all/sweep/rank.sh\n";
  std::ofstream(Directory() / "race") << "for i in 0 1; do bash rank $i & pids+=($!); done\n"
                                         "touch begin\nwait ${pids[0]} && wait ${pids[1]}\n";
  ASSERT_EQ(Bash("seq 60 >all/sweep/tasks"), 0);
  EXPECT_EQ(Bash("bash race"), 0) << Text("bash.log");
  EXPECT_EQ(Bash("sort -n ran | cmp - <(seq 60)"), 0) << Text("bash.log");
  EXPECT_EQ(Bash("grep -l 'rank 0' all/sweep/taken/*"), 0);
  EXPECT_EQ(Bash("grep -l 'rank 1' all/sweep/taken/*"), 0);
}

TEST_F(Scripts, OfMpirunSayWhenATaskCannotBeTaken) {
  ASSERT_EQ(Sweep("--mpi 2 --tasks 4 --dry-run --out all").exit_code, 0);
  std::filesystem::create_directory(Directory() / "all/sweep/taken");
  ASSERT_EQ(Bash("echo no/such >all/sweep/tasks"), 0);
  EXPECT_EQ(Bash("OMPI_COMM_WORLD_RANK=0 bash all/sweep/rank.sh"), 2);
  EXPECT_THAT(Text("bash.log"), HasSubstr("all/sweep/taken/no/such: cannot be written"));
}

// Stand-ins for sbatch and squeue.
TEST_F(Scripts, OfSlurmGiveTheTasksAsRanges) {
  ASSERT_EQ(Sweep("--slurm --tasks 12 --dry-run --out all").exit_code, 0);
  std::ofstream(Directory() / "programs/sbatch")
      << "#!/bin/bash\necho \"$*\" >>submitted\n[ ! -e full ] || exit 1\necho 42\n";
  std::ofstream(Directory() / "programs/squeue") << "#!/bin/bash\n";
  ASSERT_EQ(Bash("chmod +x programs/*"), 0);
  for (const auto& [tasks, ranges] : {std::pair<const char*, const char*>{"", "0-11"},
                                      {"3", "3"},
                                      {"0 2 3 4 7 9 10", "0,2-4,7,9-10"},
                                      {"4 3", "4,3"}}) {
    std::filesystem::remove(Directory() / "submitted");
    ASSERT_EQ(Bash(std::string("bash all/sweep/launch.sh ") + tasks), 0) << Text("bash.log");
    EXPECT_THAT(Text("submitted"), HasSubstr(std::string("--array=") + ranges + " ")) << tasks;
  }
  const Outcome other = Sweep("--slurm --tasks 4 --dry-run --out all");
  EXPECT_EQ(other.exit_code, 2) << "the tasks are in the queue";
  EXPECT_THAT(other.err, HasSubstr("holds tasks of another sweep"));
  std::ofstream(Directory() / "full");
  EXPECT_EQ(Bash("bash all/sweep/launch.sh"), 2);
  EXPECT_THAT(Text("bash.log"), HasSubstr("sbatch did not take all jobs: numsim sweep status /"));
}

// A stand-in for numsim that stops as numsim does, and one for scontrol.
TEST_F(Scripts, OfSlurmPassTermToTheProgramAndRequeueATaskThatStopped) {
  ASSERT_EQ(Sweep("--slurm --tasks 4 --dry-run --out all").exit_code, 0);
  const std::filesystem::path program = std::filesystem::canonical(std::getenv("NUMSIM_PROGRAM"));
  Edit("all/sweep/task.sh", program.string() + " run", "bash ./stand_in");
  std::ofstream(Directory() / "stand_in")
      << "trap 'sleep 0.3; exit 75' TERM\ntouch begun\nfor i in {1..500}; do sleep 0.02; done\n";
  std::ofstream(Directory() / "scontrol") << "#!/bin/bash\necho \"$*\" >requeued\n";
  std::ofstream(Directory() / "scenario")
      << "chmod +x scontrol\nPATH=$PWD:$PATH SLURM_JOB_ID=42 bash all/sweep/task.sh 0 &\n"
         "while [ ! -e begun ]; do sleep 0.02; done\nsleep 0.1\nkill -TERM $!\nwait $!\n";
  EXPECT_EQ(Bash("bash scenario"), 75) << Text("bash.log");
  EXPECT_EQ(Text("all/sweep/exit/0"), "75\n");
  EXPECT_EQ(Text("requeued"), "requeue 42\n");
}

TEST(Quoted, IsOneWordOfBash) {
  using experiments::sweep::Quoted;
  EXPECT_EQ(Quoted("--k=1,2:a/b"), "--k=1,2:a/b");
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("a b"), "'a b'");
  EXPECT_EQ(Quoted("it's $x"), "'it'\\''s $x'");
}

}  // namespace
}  // namespace numsim::apps
