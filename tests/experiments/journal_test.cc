#include "experiments/runner/journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "numsim/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {
namespace {

FinishedTrial Entry(size_t trial) {
  return {
      trial,
      "trial " + std::to_string(trial),
      "4f1c",
      {{"table", {{"1.5", "quote \" comma , line\nend \xC3\xA4"}, {"nan", ""}}}, {"empty", {}}}};
}

class JournalTest : public testing::Test {
 protected:
  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }

  void SetBytes(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  void Append(size_t trials) const {
    Journal journal(path_);
    for (size_t i = 0; i < trials; ++i) journal.Append(Entry(i));
  }

  std::string ErrorOfReading() const {
    return ErrorOf([this] { ReadJournal(path_); });
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.Path() / JournalName(1, 3);
};

TEST_F(JournalTest, IsNamedAfterItsShard) { EXPECT_EQ(path_.filename(), "1-of-3.jsonl"); }

TEST_F(JournalTest, NoFileHoldsNoTrials) { EXPECT_TRUE(ReadJournal(path_).empty()); }

TEST_F(JournalTest, ReadsBackWhatWasAppended) {
  Append(3);
  const std::vector<FinishedTrial> trials = ReadJournal(path_);
  ASSERT_EQ(trials.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(trials[i].trial, i);
    EXPECT_EQ(trials[i].label, Entry(i).label);
    EXPECT_EQ(trials[i].commit, Entry(i).commit);
    EXPECT_EQ(trials[i].rows, Entry(i).rows);
  }
}

TEST_F(JournalTest, HasTheClaimsThatTheFileOfAnExperimentMade) {
  FinishedTrial of_file = Entry(1);
  of_file.claims = "90ab";
  {
    Journal journal(path_);
    journal.Append(Entry(0));
    journal.Append(of_file);
  }
  const std::vector<FinishedTrial> trials = ReadJournal(path_);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].claims, "");
  EXPECT_EQ(trials[1].claims, "90ab");
}

// Runs of the same results differ in nothing else.
TEST_F(JournalTest, SecondsAreKeptOutsideOfTheDigest) {
  FinishedTrial slow = Entry(0);
  slow.seconds = 1.25;
  {
    Journal journal(path_);
    journal.Append(Entry(0));
    journal.Write(slow);
    journal.Sync();
  }
  const std::vector<FinishedTrial> trials = ReadJournal(path_);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].seconds, 0);
  EXPECT_EQ(trials[1].seconds, 1.25);
  const std::string bytes = Bytes();
  const size_t second = bytes.find('\n') + 1;
  const std::string first_line = bytes.substr(0, second - 2);  // without the brace
  EXPECT_EQ(bytes.substr(second), first_line + ",\"seconds\":1.25}\n");
}

TEST_F(JournalTest, ALineIsInTheFileWhenAppendReturns) {
  Journal journal(path_);
  for (size_t i = 0; i < 3; ++i) {
    journal.Append(Entry(i));
    EXPECT_EQ(ReadJournal(path_).size(), i + 1);
  }
}

TEST_F(JournalTest, EveryCutOfTheLastLineIsPassedOverAndCutOff) {
  Append(2);
  const std::string two_lines = Bytes();
  Append(3);  // Trials 0, 1, 2 once more.
  const std::string five_lines = Bytes();
  Append(0);
  ASSERT_EQ(Bytes(), five_lines) << "opening an intact journal changes nothing";
  const size_t last_line = five_lines.rfind('\n', five_lines.size() - 2) + 1;
  for (size_t length = last_line; length < five_lines.size(); ++length) {
    SetBytes(five_lines.substr(0, length));
    ASSERT_EQ(ReadJournal(path_).size(), 4u) << length;
    { const Journal journal(path_); }
    ASSERT_EQ(Bytes(), five_lines.substr(0, last_line)) << length;
  }
  EXPECT_TRUE(five_lines.starts_with(two_lines));
}

TEST_F(JournalTest, ALastLineOfZerosIsPassedOver) {
  Append(2);
  SetBytes(Bytes() + std::string(20, '\0') + "\n");
  EXPECT_EQ(ReadJournal(path_).size(), 2u);
  Append(1);
  EXPECT_EQ(ReadJournal(path_).size(), 3u);
}

TEST_F(JournalTest, ACorruptLineElsewhereIsAnErrorNamingFileAndLine) {
  Append(3);
  const std::string intact = Bytes();
  const size_t second = intact.find('\n') + 1;
  for (const char* bad :
       {"", "{", "[1]", "{\"point\": 1}", "{\"point\": \"x\"}", "{\"point\": -1"}) {
    std::string damaged = intact;
    damaged.replace(second, damaged.find('\n', second) - second, bad);
    SetBytes(damaged);
    EXPECT_TRUE(ErrorOfReading().starts_with(path_.string() + ":2: expected a finished trial"))
        << bad << ": " << ErrorOfReading();
    EXPECT_THROW(Journal{path_}, Error);
    EXPECT_EQ(Bytes(), damaged) << "a corrupt journal is left as it is";
  }
}

// A cell, a row that is missing, the number of the trial, and the digest itself; also in the last
// line, which only a crash may leave unfinished.
TEST_F(JournalTest, AChangedLineIsAnErrorThatSaysHowToGoOn) {
  Append(2);
  const std::string intact = Bytes();
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"1.5\"", "\"2.5\""},
      {R"(,["nan",""])", ""},
      {"\"point\":1", "\"point\":0"},
      {"sha256\":\"", "sha256\":\"0"}};
  for (const auto& [from, to] : changes) {
    std::string changed = intact;
    changed.replace(changed.rfind(from), from.size(), to);
    SetBytes(changed);
    EXPECT_EQ(ErrorOfReading(),
              path_.string() +
                  ":2: has been changed since it was written; delete the line, and --resume runs "
                  "its trial again")
        << from;
    EXPECT_EQ(Bytes(), changed);
  }
  std::string old = intact;
  const size_t digest = old.rfind(",\"sha256\"");
  old.replace(digest, old.rfind('}') - digest, "");
  SetBytes(old);
  EXPECT_TRUE(ErrorOfReading().starts_with(path_.string() + ":2: has no digest"));
}

TEST_F(JournalTest, ThreadsAppendWholeLines) {
  {
    Journal journal(path_);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&journal, t] {
        for (size_t i = 0; i < 50; ++i) journal.Append(Entry(t * 50 + i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<bool> seen(200);
  for (const FinishedTrial& finished : ReadJournal(path_)) seen.at(finished.trial) = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 200);
}

TEST_F(JournalTest, IsWrittenByOneAtATime) {
  std::optional<Journal> first(path_);
  EXPECT_THROW(Journal{path_}, Error);
  first.reset();
  EXPECT_NO_THROW(Journal{path_});
}

TEST_F(JournalTest, TextThatIsNotUtf8IsAnErrorAndLeavesWholeLines) {
  Journal journal(path_);
  FinishedTrial bad = Entry(0);
  bad.label = "\xFF";
  EXPECT_THROW(journal.Append(bad), Error);
  journal.Append(Entry(1));
  EXPECT_EQ(ReadJournal(path_).size(), 1u);
}

TEST_F(JournalTest, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  std::filesystem::create_symlink("/dev/full", path_);
  // A device has no length to cut; either step may be the one that fails.
  EXPECT_THROW(
      {
        Journal journal(path_);
        journal.Append(Entry(0));
      },
      Error);
}

// Files may grow by 20 bytes: the system writes these, and refuses the rest of the line.
TEST_F(JournalTest, APartOfALineThatCouldNotBeWrittenIsCutOff) {
  Journal journal(path_);
  journal.Append(Entry(0));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = std::filesystem::file_size(path_) + 20;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string error = ErrorOf([&] { journal.Append(Entry(1)); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, path_.string() + ": cannot be written: File too large");
  journal.Append(Entry(2));
  const std::vector<FinishedTrial> trials = ReadJournal(path_);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].trial, 0u);
  EXPECT_EQ(trials[1].trial, 2u);
}

TEST_F(JournalTest, NoDirectoryIsAnErrorNamingTheFile) {
  const std::filesystem::path path = directory_.Path() / "absent" / "0-of-1.jsonl";
  EXPECT_TRUE(ErrorOf([&] { Journal{path}; }).starts_with(path.string()));
}

}  // namespace
}  // namespace numsim::experiments
