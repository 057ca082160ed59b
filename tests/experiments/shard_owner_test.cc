// Two processes never run one trial; a dead one is no obstacle where it is known to be dead.
#include "experiments/runner/shard_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/experiments/run_fixture.h"

namespace numsim::experiments {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class ShardOwnerTest : public RunFixture {
 protected:
  ShardOwnerTest() { fs::create_directories(out_ / "journal"); }

  std::string ErrorOfOwning(int index, int count, bool take_over = false) const {
    return ErrorOf([&] { const ShardOwner owner(out_, index, count, take_over); });
  }
  // Writes the file of an owner like this process, with one field changed.
  void PutOwner(const std::string& field, const std::string& value) const {
    std::string text;
    {
      const ShardOwner owner(out_, 0, 2, false);
      text = Bytes(file_);
    }
    const size_t begin = text.find(": ", text.find("\"" + field + "\"")) + 2;
    text.replace(begin, text.find_first_of(",\n", begin) - begin, value);
    std::ofstream(file_) << text;
  }

  const fs::path out_ = Directory("out");
  const fs::path file_ = out_ / "journal" / "0-of-2.owner";
};

// Costs cut the trials of other counts in other ways.
TEST_F(ShardOwnerTest, SharesTrialsUnlessItIsAnotherShardOfTheSameCount) {
  EXPECT_TRUE(SharesTrials(1, 3, 1, 3));
  EXPECT_FALSE(SharesTrials(0, 3, 1, 3));
  EXPECT_TRUE(SharesTrials(0, 1, 2, 3));
  EXPECT_TRUE(SharesTrials(3, 4, 0, 2));
}

TEST_F(ShardOwnerTest, OwnsAsLongAsItLives) {
  std::optional<ShardOwner> owner(std::in_place, out_, 0, 2, false);
  EXPECT_TRUE(fs::exists(file_));
  for (const bool take_over : {false, true}) {
    EXPECT_THAT(ErrorOfOwning(0, 2, take_over),
                AllOf(HasSubstr("another process is running"), Not(HasSubstr("--take-over"))));
    EXPECT_THAT(ErrorOfOwning(0, 1, take_over), HasSubstr("0-of-2.owner: another process"));
    EXPECT_THAT(ErrorOfOwning(2, 4, take_over), HasSubstr("0-of-2.owner: another process"));
    EXPECT_EQ(ErrorOfOwning(1, 2, take_over), "no error");
    EXPECT_THAT(ErrorOfOwning(3, 4, take_over), HasSubstr("0-of-2.owner: another process"));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(out_ / "journal"), {}), 1) << "refused ones left";
  owner.reset();
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(ErrorOfOwning(0, 1), "no error");
}

TEST_F(ShardOwnerTest, AnEndedProcessOfThisHostIsReplaced) {
  PutOwner("process", "4194399");  // above the largest number of a process
  EXPECT_EQ(ErrorOfOwning(0, 2), "no error");
  PutOwner("start", "\"1\"");  // the number has gone to another process
  EXPECT_EQ(ErrorOfOwning(0, 1), "no error");
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(ShardOwnerTest, AProcessOfAnotherHostNeedsTakeOver) {
  for (const char* const field : {"host", "space"}) {
    PutOwner(field, "\"elsewhere\"");
    EXPECT_THAT(ErrorOfOwning(0, 2), AllOf(HasSubstr(" of host "), HasSubstr("--take-over")));
    EXPECT_THAT(ErrorOfOwning(0, 1), HasSubstr("--take-over"));
    EXPECT_TRUE(fs::exists(file_));
    EXPECT_EQ(ErrorOfOwning(0, 2, /*take_over=*/true), "no error");
    EXPECT_FALSE(fs::exists(file_));
  }
}

TEST_F(ShardOwnerTest, AProcessBeforeThisStartOfTheHostIsReplaced) {
  PutOwner("boot", "\"earlier\"");
  EXPECT_EQ(ErrorOfOwning(0, 2), "no error");
  EXPECT_FALSE(fs::exists(file_));
}

// Empty, torn, of wrong types, and so long or deep that reading it would take a while.
TEST_F(ShardOwnerTest, AFileThatNamesNoProcessNeedsTakeOver) {
  PutOwner("process", "4194399");
  const std::string whole = Bytes(file_);
  for (const std::string& text : {std::string(),
                                  whole.substr(0, whole.size() / 2),
                                  std::string("junk"),
                                  std::string("null"),
                                  std::string("{\"host\": 3}"),
                                  std::string(10000, '['),
                                  std::string(1000000, '['),
                                  std::string(100, '\0')}) {
    SCOPED_TRACE(text.substr(0, 20));
    std::ofstream(file_) << text;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(
        ErrorOfOwning(0, 2),
        AllOf(HasSubstr("0-of-2.owner: another process is running trials of this shard: the "
                        "file does not say which"),
              HasSubstr("--take-over")));
    EXPECT_THAT(ErrorOfOwning(0, 1), HasSubstr("--take-over"));
    EXPECT_EQ(Bytes(file_), text);
    EXPECT_EQ(ErrorOfOwning(0, 2, /*take_over=*/true), "no error");
    EXPECT_FALSE(fs::exists(file_));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    EXPECT_TRUE(fs::is_empty(out_ / "journal"));
  }
}

TEST_F(ShardOwnerTest, RunAndMergeRespectIt) {
  Run(Counting(), Shard(Directory("shard"), 1, 2));
  Run(Counting(), Shard(out_, 0, 2));
  EXPECT_FALSE(fs::exists(file_)) << "released at the end";
  std::optional<ShardOwner> owner(std::in_place, out_, 1, 2, false);
  EXPECT_THAT(ErrorOf([&] { Run(Counting(), Shard(out_, 1, 2)); }), HasSubstr("another process"));
  EXPECT_THAT(ErrorOf([&] {
                Merge(Counting(), {out_, Directory("shard")}, out_, {});
              }),
              HasSubstr("another process"));
  owner.reset();
  Run(Counting(), Shard(out_, 1, 2));
  EXPECT_EQ(ResultsIn(out_), Expected());
}

TEST_F(ShardOwnerTest, ReleaseWithoutDestructorsLeavesOthersAlone) {
  PutOwner("host", "\"elsewhere\"");
  const ShardOwner owner(out_, 1, 2, false);
  ReleaseShardsOfThisProcess(out_);
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_FALSE(fs::exists(out_ / "journal" / "1-of-2.owner"));
}

}  // namespace
}  // namespace numsim::experiments
