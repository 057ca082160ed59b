// `numsim run` ended by signals: exit code, message, and what --resume makes of the rest.
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/apps/background.h"
#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

constexpr int kStopped = 75;
// Many trials of a few milliseconds each.
constexpr const char* kShortTrials =
    "run quantization-variance --threads 1 --distributions normal --formats bf16 --granularities "
    "row --roundings rne --pairs 64 --k-low 64 --k-high 4096 --seeds 50 --out ";
// One trial that takes minutes.
constexpr const char* kLongTrial =
    "run quantization-variance --threads 1 --distributions normal --formats bf16 --granularities "
    "row --roundings rne --pairs 1000000 --k-low 64 --k-high 65536 --seeds 1 --out ";

class RunInterruption : public ProgramTest {};

TEST_F(RunInterruption, StoppedByEitherSignalAndResumedIsTheSameAsInOneGo) {
  const std::string words = kShortTrials;
  ASSERT_EQ(Numsim(words + "whole").exit_code, 0);
  std::string more;
  int stopped = 0;
  for (const int signal : {SIGTERM, SIGINT}) {
    Background run(Directory(), Words(words + "part" + more));
    const std::filesystem::path journal = Path("part") / "journal" / "0-of-1.jsonl";
    ASSERT_TRUE(WaitForLines(journal, more.empty() ? 5 : 100));
    run.Signal(signal);
    const int status = run.Wait();
    if (status == kStopped) {
      ++stopped;
      EXPECT_THAT(run.Text(), HasSubstr(" of 400 trials finished; "));
      EXPECT_TRUE(run.Text().ends_with(" --out part --resume\n")) << run.Text();
      EXPECT_EQ(std::count(run.Text().begin(), run.Text().end(), '\n'), 1) << run.Text();
      EXPECT_FALSE(std::filesystem::exists(Path("part") / "manifest.json"));
    } else {
      EXPECT_EQ(status, 0);
    }
    more = " --resume";
  }
  EXPECT_GE(stopped, 1);  // a fast machine may have finished before the second
  EXPECT_EQ(Numsim(words + "part --resume").exit_code, 0);
  for (const char* const file : {"variance.csv", "summary.txt", "verdicts.csv"}) {
    EXPECT_EQ(Bytes(Path("part") / file), Bytes(Path("whole") / file)) << file;
  }
}

TEST_F(RunInterruption, ATrialThatOutlastsTheGraceIsGivenUp) {
  Background run(Directory(), Words(std::string(kLongTrial) + "long --grace 0.1"));
  ASSERT_TRUE(WaitForLines(Path("long") / "settings.json", 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), kStopped);
  EXPECT_THAT(run.Text(), HasSubstr("within a trial that takes longer than --grace"));
  EXPECT_TRUE(run.Text().ends_with(" --resume\n")) << run.Text();
}

TEST_F(RunInterruption, ARunningShardIsRefusedAndAKilledOneResumes) {
  const std::string words = std::string(kLongTrial) + "long";
  Background run(Directory(), Words(words));
  const std::filesystem::path owner = Path("long") / "journal" / "0-of-1.owner";
  ASSERT_TRUE(WaitForLines(owner, 1));
  for (const char* const more : {"", " --resume", " --resume --take-over", " --shard 1/3"}) {
    const Outcome second = Numsim(words + more);
    EXPECT_EQ(second.exit_code, 2) << more;
    EXPECT_THAT(second.err, HasSubstr("0-of-1.owner: another process is running trials")) << more;
  }
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), 128 + SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(owner));
  Background again(Directory(), Words(words + " --resume --grace 0"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  again.Signal(SIGTERM);
  EXPECT_EQ(again.Wait(), kStopped) << "the file of a dead process is no obstacle";
  EXPECT_FALSE(std::filesystem::exists(owner));
}

TEST_F(RunInterruption, AFullDiskIsAnErrorAndResumesOnceThereIsRoom) {
  if (geteuid() != 0) GTEST_SKIP() << "only root mounts a small disk";
  const std::string disk = Path("disk").string();
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "cannot mount";
  const std::string words = kShortTrials;
  const Outcome full = Numsim(words + "disk/part");
  EXPECT_EQ(full.exit_code, 2) << full.out;
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  EXPECT_THAT(full.err, HasSubstr("disk/part"));
  EXPECT_FALSE(std::filesystem::exists(Path("disk/part/manifest.json")));
  EXPECT_EQ(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  EXPECT_EQ(Numsim(words + "disk/part --resume").exit_code, 0);
  EXPECT_EQ(Numsim(words + "whole").exit_code, 0);
  for (const char* const file : {"variance.csv", "summary.txt", "verdicts.csv"}) {
    EXPECT_EQ(Bytes(Path("disk/part") / file), Bytes(Path("whole") / file)) << file;
  }
  EXPECT_EQ(umount(disk.c_str()), 0);
}

TEST_F(RunInterruption, ASecondSignalEndsAtOnce) {
  Background run(Directory(), Words(std::string(kLongTrial) + "long"));
  ASSERT_TRUE(WaitForLines(Path("long") / "settings.json", 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.Signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace numsim::apps
