// Shards that Merge refuses, differences that --allow accepts, and their record in the manifest.
#include "experiments/runner/merge_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/experiments/run_fixture.h"

namespace numsim::experiments {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class MergeCheckTest : public RunFixture {
 protected:
  // Makes two shards and changes what the trials of the second were measured with.
  template <typename Change>
  void Make(const Experiment& experiment, Change change) {
    experiments::Run(experiment, Shard(first_, 0, 2));
    experiments::Run(experiment, Shard(second_, 1, 2));
    RewriteJournal(second_ / "journal" / "1-of-2.jsonl", change);
  }
  std::string ErrorOfMerge(const Experiment& experiment, const std::vector<std::string>& allow) {
    return ErrorOf([&] { Merge(experiment, {first_, second_}, out_, {}, allow); });
  }

  const fs::path first_ = Directory("first"), second_ = Directory("second"),
                 out_ = Directory("out");
};

TEST_F(MergeCheckTest, AnotherCommitIsRefusedUnlessAllowedAndThenRecorded) {
  Make(Counting(), [](FinishedTrial& entry) { entry.commit = "feed"; });
  const std::string message = ErrorOfMerge(Counting(), {"build", "processor", "double"});
  EXPECT_THAT(message, HasSubstr("merge: the trials differ in their commit: "));
  EXPECT_THAT(message, HasSubstr("feed in " + second_.string()));
  EXPECT_THAT(message, HasSubstr(" in " + first_.string()));
  EXPECT_THAT(message, HasSubstr("--allow commit"));
  EXPECT_FALSE(fs::exists(out_));
  EXPECT_EQ(ErrorOfMerge(Counting(), {"commit"}), "no error");
  EXPECT_EQ(ResultsIn(out_), Expected());
  EXPECT_THAT(Bytes(out_ / "manifest.json"), HasSubstr("\"allowed\": {\n    \"commit\": \""));
  EXPECT_THAT(Bytes(out_ / "manifest.json"), HasSubstr("feed in " + second_.string()));
}

// Also where a run was resumed by another program: the trials of one journal then differ.
TEST_F(MergeCheckTest, EveryDirectoryOfAValueIsNamed) {
  FinishedTrials finished;
  const auto add = [&](const std::string& commit, const fs::path& directory) {
    FinishedRows& entry = finished[finished.size()];
    entry.commit = commit;
    entry.journal = directory / "journal" / "0-of-1.jsonl";
  };
  add("feed", "first");
  add("food", "second");
  add("feed", "second");
  EXPECT_THAT(ErrorOf([&] { CheckAlike(Counting(), settings_, finished, {}, {}); }),
              HasSubstr("differ in their commit: feed in first, second; food in second; expected"));
}

TEST_F(MergeCheckTest, AnotherBuildIsRefusedUnlessAllowed) {
  Make(Counting(), [](FinishedTrial& entry) { entry.build = "Clang 14 Debug"; });
  EXPECT_THAT(ErrorOfMerge(Counting(), {"commit"}),
              HasSubstr("differ in their build: Clang 14 Debug in " + second_.string()));
  EXPECT_EQ(ErrorOfMerge(Counting(), {"build"}), "no error");
}

TEST_F(MergeCheckTest, AnOlderDirectoryBesideANewOneHasAnUnknownBuild) {
  Make(Counting(), [](FinishedTrial& entry) { entry.build = entry.processor = ""; });
  EXPECT_THAT(ErrorOfMerge(Counting(), {}), HasSubstr("unknown in " + second_.string()));
  RewriteJournal(first_ / "journal" / "0-of-2.jsonl",
                 [](FinishedTrial& entry) { entry.build = entry.processor = ""; });
  EXPECT_EQ(ErrorOfMerge(Counting(), {}), "no error");
  EXPECT_EQ(ResultsIn(out_), Expected());
}

TEST_F(MergeCheckTest, AnotherProcessorIsRefusedOnlyWhereResultsDependOnIt) {
  const auto change = [](FinishedTrial& entry) { entry.processor = "Abacus, beads"; };
  Experiment timed = Counting();
  timed.timed = true;
  Make(timed, change);
  EXPECT_THAT(ErrorOfMerge(timed, {}),
              AllOf(HasSubstr("differ in their processor: "),
                    HasSubstr("Abacus, beads in " + second_.string())));
  EXPECT_EQ(ErrorOfMerge(timed, {"processor"}), "no error");
  fs::remove_all(out_);
  EXPECT_EQ(ErrorOfMerge(Counting(), {}), "no error") << "the arithmetic is exact";
  EXPECT_THAT(Bytes(out_ / "manifest.json"), Not(HasSubstr("\"allowed\"")));
}

TEST_F(MergeCheckTest, AccumulationModeLibraryDependsOnTheProcessor) {
  settings_.options["shapes"] = "ab,library,f";
  const auto forget = [](FinishedTrial& entry) { entry.processor = ""; };
  Make(Counting(), forget);
  EXPECT_THAT(ErrorOfMerge(Counting(), {}), HasSubstr("differ in their processor: "));
  RewriteJournal(first_ / "journal" / "0-of-2.jsonl", forget);
  EXPECT_THAT(ErrorOfMerge(Counting(), {}), HasSubstr("differ in their processor: unknown in "))
      << "two unknown processors need not be the same";
}

// The word alone, in a list or after a name, is the mode; within another word it is not.
TEST_F(MergeCheckTest, OnlyTheWordLibraryIsAnAccumulationMode) {
  const Experiment experiment = Counting();
  for (const char* mode :
       {"library", "fp32,library", "head=library", "[\"library\"]", "mylibrary,library"}) {
    settings_.options["shapes"] = mode;
    EXPECT_TRUE(DependsOnProcessor(experiment, settings_)) << mode;
  }
  for (const char* other : {"", "fp32", "mylibrary", "library2", "librarys,fp32", "a-library"}) {
    settings_.options["shapes"] = other;
    EXPECT_FALSE(DependsOnProcessor(experiment, settings_)) << other;
  }
}

TEST_F(MergeCheckTest, TheSameDirectoryTwiceIsRefused) {
  Run(Counting(), Options(first_));
  EXPECT_EQ(ErrorOf([&] {
              Merge(Counting(), {first_, first_ / "."}, out_, {}, {"double"});
            }),
            "merge: " + first_.string() + " and " + (first_ / ".").string() +
                " are the same directory; expected each shard once");
}

TEST_F(MergeCheckTest, AnAllowedDifferenceThatIsNoneIsRecordedAsSuch) {
  Make(Counting(), [](FinishedTrial&) {});
  EXPECT_EQ(ErrorOfMerge(Counting(), {"commit"}), "no error");
  EXPECT_THAT(Bytes(out_ / "manifest.json"), HasSubstr("\"commit\": \"none\""));
}

TEST_F(MergeCheckTest, AMistypedDifferenceIsAnErrorWithTheNearestName) {
  EXPECT_THAT(ErrorOf([] { CheckAllowed({"procesor"}); }), HasSubstr("did you mean processor?"));
  EXPECT_EQ(ErrorOf([] { CheckAllowed({"commit", "build", "processor", "double"}); }), "no error");
}

}  // namespace
}  // namespace numsim::experiments
