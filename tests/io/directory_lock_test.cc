#include "numsim/io/directory_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;
using IfHeld = DirectoryLock::IfHeld;
using DirectoryLockTest = IoTest;

TEST_F(DirectoryLockTest, OneHolderAtATime) {
  std::optional<DirectoryLock> lock;
  lock.emplace(Path("lock"), IfHeld::kThrow);
  ExpectMessage(ErrorOf([&] { DirectoryLock(Path("lock"), IfHeld::kThrow); }),
                {Directory().string(), "another process is working there"});
  lock.reset();
  EXPECT_TRUE(Names().empty());
  DirectoryLock(Path("lock"), IfHeld::kThrow);
}

// Each waiter gets the lock in turn, although each holder removes the file that others wait for.
TEST_F(DirectoryLockTest, WaitersHoldItOneAtATime) {
  std::atomic<int> holders = 0, turns = 0;
  const auto take_turns = [&] {
    for (int turn = 0; turn < 200; ++turn) {
      const DirectoryLock lock(Path("lock"), IfHeld::kWait);
      EXPECT_EQ(++holders, 1);
      ++turns;
      --holders;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(take_turns);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, 800);
}

TEST_F(DirectoryLockTest, AKilledProcessReleasesIt) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const DirectoryLock lock(Path("lock"), IfHeld::kThrow);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  DirectoryLock(Path("lock"), IfHeld::kThrow);
}

TEST_F(DirectoryLockTest, AFileThatCannotBeMadeIsAnError) {
  ExpectMessage(ErrorOf([&] { DirectoryLock(Path("no/lock"), IfHeld::kWait); }),
                {Path("no/lock").string(), "No such file or directory"});
}

// This process is one that has not ended; files of users may have similar names.
TEST_F(DirectoryLockTest, SweepLeavesFilesOfRunningProcessesAndOfUsers) {
  const std::vector<std::string> names = {TemporaryPrefix() + "0.tmp",
                                          ".numsim-",
                                          ".numsim-999999999",
                                          ".numsim-cache",
                                          ".numsim--1-x"};
  for (const std::string& name : names) Put(name, "x");
  SweepTemporaries(Directory());
  EXPECT_EQ(Names().size(), names.size());
}

TEST_F(DirectoryLockTest, SweepRemovesUnfinishedFilesAndFoldersAlone) {
  Put(".numsim-999999999-0.tmp", "x");
  Put("mine.tmp", "x");
  fs::create_directory(Path(".numsim-999999999-figure-abc"));
  Put(".numsim-999999999-figure-abc/figure.gp", "x");
  SweepTemporaries(Directory());
  EXPECT_EQ(Names(), std::vector<std::string>{"mine.tmp"});
  SweepTemporaries(Path("no"));  // nothing to sweep is no error
}

}  // namespace
}  // namespace numsim
