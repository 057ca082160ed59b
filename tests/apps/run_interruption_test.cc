// `numsim run` ended by signals: exit code, message, and what --resume makes of the rest.
#include <fmt/format.h>
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

// One trial, a training of half a second.
constexpr const char* kTraining =
    "run moment-formats --threads 1 --m fp32 --v fp32 --scalings tensor --pairs none --text-size 16384 "
    "--layers 1 --width 32 --heads 1 --context 32 --batch 4 --steps 600 --seeds 1 --out ";

class RunInterruption : public ProgramTest {
 protected:
  void ExpectTheSameTraining(const std::string& directory) const {
    for (const char* const file : {"curves.csv", "final.csv", "spread.csv", "summary.txt"}) {
      EXPECT_EQ(Bytes(Path(directory) / file), Bytes(Path("whole") / file)) << file;
    }
    EXPECT_FALSE(std::filesystem::exists(Path(directory) / kCheckpoint)) << "the trial is finished";
  }

  // Waits until the file exists with other bytes than these.
  static bool WaitForAnother(const std::filesystem::path& path, const std::string& bytes) {
    for (int i = 0; i < 3000; ++i) {
      if (std::filesystem::exists(path) && Bytes(path) != bytes) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  static constexpr const char* kCheckpoint = "journal/0-training.safetensors";
};

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

TEST_F(RunInterruption, ATrainingContinuesAtItsStepAfterEitherSignalAndAKill) {
  const std::string words = kTraining;
  ASSERT_EQ(Numsim(words + "whole").exit_code, 0);
  std::string more = " --save-every 0.01", before;
  for (const int signal : {SIGTERM, SIGKILL, SIGINT}) {
    Background run(Directory(), Words(words + "part" + more));
    const std::filesystem::path checkpoint = Path("part") / kCheckpoint;
    ASSERT_TRUE(WaitForAnother(checkpoint, before));
    run.Signal(signal);
    EXPECT_EQ(run.Wait(), signal == SIGKILL ? 128 + SIGKILL : kStopped) << run.Text();
    EXPECT_TRUE(std::filesystem::exists(checkpoint));
    before = Bytes(checkpoint);
    more = " --save-every 0.01 --resume";
  }
  const Outcome resumed = Numsim(words + "part --resume");
  EXPECT_EQ(resumed.exit_code, 0);
  EXPECT_THAT(resumed.err, HasSubstr("\" continues at step "));
  ExpectTheSameTraining("part");
}

TEST_F(RunInterruption, ACheckpointThatIsDamagedOrOfAnotherTrialIsNotBelieved) {
  const std::string words = kTraining;
  ASSERT_EQ(Numsim(words + "whole").exit_code, 0);
  const auto stop = [&](const std::string& directory, const std::string& more) {
    Background run(Directory(), Words(words + directory + " --save-every 0.01" + more));
    ASSERT_TRUE(WaitForAnother(Path(directory) / kCheckpoint, ""));
    run.Signal(SIGTERM);
    ASSERT_EQ(run.Wait(), kStopped);
  };
  stop("damaged", "");
  stop("other", " --seed 1");
  const std::string good = Bytes(Path("damaged") / kCheckpoint);
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  for (const auto& [bytes, message] : {std::pair{bad, "has been changed since it was written"},
                                       {good.substr(0, good.size() - 1), "safetensors: "},
                                       {Bytes(Path("other") / kCheckpoint), "is of settings '"}}) {
    std::filesystem::copy(Path("damaged"), Path("copy"), std::filesystem::copy_options::recursive);
    std::ofstream(Path("copy") / kCheckpoint) << bytes;
    const Outcome resumed = Numsim(words + "copy --resume");
    EXPECT_EQ(resumed.exit_code, 0);
    EXPECT_THAT(resumed.err,
                HasSubstr("begins anew, because its checkpoint cannot be used: copy/"));
    EXPECT_THAT(resumed.err, HasSubstr(message));
    ExpectTheSameTraining("copy");
    std::filesystem::remove_all(Path("copy"));
  }
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

TEST_F(RunInterruption, ASecondSignalOfEitherKindEndsAtOnce) {
  for (const auto& [first, second] :
       {std::pair{SIGTERM, SIGTERM}, {SIGINT, SIGTERM}, {SIGTERM, SIGINT}}) {
    const std::string out = fmt::format("{}-{}", first, second);
    Background run(Directory(), Words(std::string(kLongTrial) + out));
    ASSERT_TRUE(WaitForLines(Path(out) / "settings.json", 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    run.Signal(first);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    run.Signal(second);
    EXPECT_EQ(run.Wait(), 128 + second) << out;
  }
}

}  // namespace
}  // namespace numsim::apps
