#include "numsim/io/directory_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "numsim/io/process_name.h"
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

// Returns the prefix of a process like this one, with one field changed.
std::string PrefixOf(const std::function<void(ProcessName&)>& change) {
  ProcessName name = ThisProcess();
  change(name);
  return ".numsim-" + FileNamePartOf(name) + "-";
}

const std::string kEnded =
    PrefixOf([](ProcessName& name) { name.process = 4194399; });  // above the largest number

TEST(TemporaryPrefix, DiffersBetweenHostsSpacesBootsAndProcesses) {
  const std::string own = TemporaryPrefix();
  EXPECT_EQ(own, PrefixOf([](ProcessName&) {}));
  EXPECT_NE(own, PrefixOf([](ProcessName& name) { name.host += "2"; }));
  EXPECT_NE(own, PrefixOf([](ProcessName& name) { name.space += "2"; }));
  EXPECT_NE(own, PrefixOf([](ProcessName& name) { name.boot += "2"; }));
  EXPECT_NE(own, PrefixOf([](ProcessName& name) { name.process += 1; }));
  EXPECT_NE(own, PrefixOf([](ProcessName& name) { name.start += "2"; }));
  EXPECT_LT(own.size(), 70u);
}

TEST(TemporaryPrefix, IsAnotherOneAfterAFork) {
  const std::string own = TemporaryPrefix();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(TemporaryPrefix() == own ? 1 : 0);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// This process is one that has not ended; whether those of other hosts and containers have, cannot be
// seen from here; files of users may have similar names.
TEST_F(DirectoryLockTest, SweepLeavesFilesOfRunningAndForeignProcessesAndOfUsers) {
  const auto ended_at = [](const std::string& host, const std::string& space) {
    return PrefixOf([&](ProcessName& name) {
      name.host += host;
      name.space += space;
      name.process = 4194399;
    });
  };
  const std::vector<std::string> names = {TemporaryPrefix() + "0.tmp",
                                          ended_at("2", "") + "0.tmp",
                                          ended_at("", "2") + "0.tmp",
                                          kEnded.substr(0, kEnded.size() - 1),
                                          ".numsim-",
                                          ".numsim-----",
                                          ".numsim-999999999-0.tmp",
                                          ".numsim-cache"};
  for (const std::string& name : names) Put(name, "x");
  SweepTemporaries(Directory());
  EXPECT_EQ(Names().size(), names.size());
}

TEST_F(DirectoryLockTest, SweepRemovesUnfinishedFilesAndFoldersAlone) {
  Put(kEnded + "0.tmp", "x");
  Put(PrefixOf([](ProcessName& name) { name.start = "1"; }) + "0.tmp",
      "x");  // its number is ours now
  Put(PrefixOf([](ProcessName& name) { name.boot += "2"; }) + "0.tmp", "x");  // before a restart
  Put("mine.tmp", "x");
  fs::create_directory(Path(kEnded + "figure-abc"));
  Put(kEnded + "figure-abc/figure.gp", "x");
  SweepTemporaries(Directory());
  EXPECT_EQ(Names(), std::vector<std::string>{"mine.tmp"});
  SweepTemporaries(Path("no"));  // nothing to sweep is no error
}

}  // namespace
}  // namespace numsim
