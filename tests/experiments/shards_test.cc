// Shards of one run, in one directory and in several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "experiments/runner/journal.h"
#include "experiments/runner/runner.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Trials of equal cost, which shards take in turn.
class ShardsTest : public RunFixture {
 protected:
  static Experiment MadeUpExperiment() { return WithEqualCosts(experiments::MadeUpExperiment()); }
  Experiment Counting() { return WithEqualCosts(RunFixture::Counting()); }

 private:
  static Experiment WithEqualCosts(Experiment experiment) {
    experiment.trials = [](const Settings& settings) {
      std::vector<Trial> trials = MadeUpTrials(settings);
      for (Trial& trial : trials) trial.cost = 1;
      return trials;
    };
    return experiment;
  }
};

std::string ToString(const std::vector<int>& order) {
  std::string name = "order";
  for (const int shard : order) name += " " + std::to_string(shard);
  return name;
}

TEST_F(ShardsTest, InOneDirectoryInAnyOrderEqualOneRun) {
  std::vector<int> order = {0, 1, 2};
  do {
    const fs::path out = Directory(ToString(order));
    for (size_t k = 0; k < order.size(); ++k) {
      EXPECT_FALSE(HasOutputs(out));
      const RunReport report = Run(Counting(), Shard(out, order[k], 3));
      EXPECT_EQ(report.trials_total, trials_);
      EXPECT_EQ(report.trials_run, 3u);
      EXPECT_EQ(report.trials_missing, trials_ - 3 * (k + 1));
      EXPECT_EQ(report.outputs.empty(), k < 2);
    }
    EXPECT_EQ(ResultsIn(out), Expected()) << ToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ShardsTest, InThreeDirectoriesMergeInAnyOrderToOneRun) {
  std::vector<fs::path> shards;
  for (int k = 0; k < 3; ++k) {
    shards.push_back(Directory("shard " + std::to_string(k)));
    Run(Counting(), Shard(shards.back(), k, 3));
  }
  calls_ = 0;
  std::vector<int> order = {0, 1, 2};
  do {
    const std::vector<fs::path> ordered = {shards[order[0]], shards[order[1]], shards[order[2]]};
    const fs::path out = Directory(ToString(order));
    const RunReport report = Merge(Counting(), ordered, out, {"numsim", "merge"});
    EXPECT_EQ(report.trials_total, trials_);
    EXPECT_EQ(report.trials_run, 0u);
    EXPECT_EQ(report.trials_missing, 0u);
    EXPECT_EQ(ResultsIn(out), Expected());
    // The merged result is a finished directory like any other.
    EXPECT_EQ(Run(Counting(), Resume(out)).trials_run, 0u);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(calls_, 0);
}

TEST_F(ShardsTest, AtTheSameTimeInOneDirectoryEqualOneRun) {
  SetThreadCount(1);
  for (int repeat = 0; repeat < 10; ++repeat) {
    const fs::path out = Directory("together " + std::to_string(repeat));
    const Experiment experiment = MadeUpExperiment();
    std::vector<std::thread> threads;
    std::vector<std::string> errors(3);
    for (int k = 0; k < 3; ++k) {
      threads.emplace_back([&, k] {
        errors[static_cast<size_t>(k)] = ErrorOf([&] { Run(experiment, Shard(out, k, 3)); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(errors, std::vector<std::string>(3, "no error"));
    EXPECT_TRUE(fs::exists(out / "manifest.json"));
    EXPECT_EQ(ResultsIn(out), Expected());
  }
}

TEST_F(ShardsTest, MoreShardsThanTrialsEqualOneRun) {
  const fs::path out = Directory("out");
  for (int k = 0; k < 20; ++k) Run(Counting(), Shard(out, k, 20));
  EXPECT_EQ(calls_, static_cast<int>(trials_)) << "a shard without trials must not start over";
  EXPECT_EQ(ResultsIn(out), Expected());
}

TEST_F(ShardsTest, AnInterruptedShardResumesBesideTheOthers) {
  const fs::path out = Directory("out");
  SetThreadCount(1);
  Run(Counting(), Shard(out, 0, 2));
  fail_at_ = MadeUpTrials(settings_)[3].label;  // of shard 1
  EXPECT_THROW(Run(Counting(), Shard(out, 1, 2)), Error);
  EXPECT_FALSE(HasOutputs(out));
  fail_at_.clear();
  const size_t kept = ReadJournal(out / "journal" / "1-of-2.jsonl").size();
  ASSERT_GT(kept, 0u);
  EXPECT_THROW(Run(Counting(), Shard(out, 1, 2)), Error);
  RunOptions options = Shard(out, 1, 2);
  options.resume = true;
  EXPECT_EQ(Run(Counting(), options).trials_run, 4 - kept);
  EXPECT_EQ(ResultsIn(out), Expected());
}

TEST_F(ShardsTest, ResumeKeepsTrialsThatOtherShardingsFinished) {
  const fs::path out = Directory("out");
  Run(Counting(), Shard(out, 0, 3));
  Run(Counting(), Shard(out, 1, 3));
  EXPECT_THAT(ErrorOf([&] { Run(Counting(), Options(out)); }), HasSubstr("use --resume"));
  calls_ = 0;
  Run(Counting(), Resume(out));
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(ResultsIn(out), Expected());
}

TEST_F(ShardsTest, AShardOfACompleteDirectoryStartsOver) {
  const fs::path out = Directory("out");
  Run(Counting(), Options(out));
  for (int k = 0; k < 3; ++k) {
    calls_ = 0;
    EXPECT_EQ(Run(Counting(), Shard(out, k, 3)).trials_missing, trials_ - 3 * (k + 1u));
    EXPECT_EQ(calls_, 3);
  }
  EXPECT_EQ(ResultsIn(out), Expected());
}

TEST_F(ShardsTest, OutOfRangeIsAnError) {
  for (const auto& shard : {std::pair(3, 3), std::pair(-1, 3), std::pair(0, 0)}) {
    const std::string message =
        ErrorOf([&] { Run(Counting(), Shard(Directory("out"), shard.first, shard.second)); });
    EXPECT_THAT(message, HasSubstr("--shard"));
  }
}

TEST_F(ShardsTest, MergeTellsHowManyTrialsAreMissingAndWritesNothing) {
  const fs::path first = Directory("first");
  const fs::path out = Directory("out");
  Run(Counting(), Shard(first, 1, 3));
  EXPECT_EQ(
      ErrorOf([&] { Merge(Counting(), {first}, out, {}); }),
      "merge: 6 of 9 trials are in none of the shards: numbers 0, 2, 3, 5, 6, 8; the first is "
      "\"ab seed=5\"");
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(ShardsTest, MergeOfTimesTakesTheRowsOfTheShards) {
  Experiment experiment = MadeUpExperiment();
  experiment.timed = true;
  experiment.run = [this](const Settings& settings, const Trial& trial) {
    Rows rows = MadeUpRun(settings, trial);
    for (auto& row : rows.at("values")) row[3] = ++calls_;  // never the same again
    return rows;
  };
  std::vector<fs::path> shards;
  for (int k = 0; k < 2; ++k) {
    shards.push_back(Directory("shard " + std::to_string(k)));
    Run(experiment, Shard(shards.back(), k, 2));
  }
  const fs::path out = Directory("out");
  Merge(experiment, shards, out, {});
  const Table merged = ReadCsv(out / "values.csv");
  size_t row = 0;
  for (size_t i = 0; i < trials_; ++i) {
    const std::string name = i % 2 == 0 ? "0-of-2.jsonl" : "1-of-2.jsonl";
    for (const FinishedTrial& entry : ReadJournal(shards[i % 2] / "journal" / name)) {
      if (entry.trial != i) continue;
      for (const auto& measured : entry.rows.at("values")) {
        ASSERT_LT(row, merged.rows.size());
        EXPECT_EQ(merged.rows[row++], measured);
      }
    }
  }
  EXPECT_EQ(row, merged.rows.size());
  // Two measurements of one trial: which one is meant is not for merge to say.
  Run(experiment, Options(Directory("again")));
  EXPECT_THAT(ErrorOf([&] {
                Merge(experiment, {shards[0], Directory("again")}, Directory("both"), {});
              }),
              HasSubstr("differ"));
}

// Only the rows of the timed table differ from run to run.
TEST_F(ShardsTest, MergeOfTimedTablesKeepsThoseOfTheFirstShard) {
  Experiment experiment = MadeUpExperiment();
  experiment.tables.push_back({.name = "times", .columns = {{"call", ""}}, .timed = true});
  experiment.run = [this](const Settings& settings, const Trial& trial) {
    Rows rows = MadeUpRun(settings, trial);
    rows["times"].push_back({++calls_});
    return rows;
  };
  const fs::path first = Directory("first"), second = Directory("second"), out = Directory("out");
  Run(experiment, Options(first));
  Run(experiment, Options(second));
  ASSERT_NE(Bytes(first / "times.csv"), Bytes(second / "times.csv"));
  Merge(experiment, {first, second}, out, {}, {"double"});
  EXPECT_EQ(Bytes(out / "times.csv"), Bytes(first / "times.csv"));
  EXPECT_EQ(ResultsIn(out), ResultsIn(first));

  Experiment other = experiment;
  other.run = [this](const Settings& settings, const Trial& trial) {
    Rows rows = MadeUpRun(settings, trial);
    rows.at("values")[0][3] = ++calls_;
    return rows;
  };
  Run(other, Options(Directory("other")));
  EXPECT_THAT(ErrorOf([&] {
                Merge(experiment, {first, Directory("other")}, Directory("both"), {});
              }),
              HasSubstr("differ"));
}

TEST_F(ShardsTest, MergeIntoOneOfTheShards) {
  const fs::path first = Directory("first");
  const fs::path second = Directory("second");
  Run(Counting(), Shard(first, 0, 2));
  Run(Counting(), Shard(second, 1, 2));
  Merge(Counting(), {first, second}, first, {});
  EXPECT_EQ(ResultsIn(first), Expected());
  Merge(Counting(), {second}, first, {});
  EXPECT_EQ(ResultsIn(first), Expected());
}

TEST_F(ShardsTest, MergeKeepsTheSecondsOfTrials) {
  const fs::path shard = Directory("shard"), out = Directory("out");
  Run(Counting(), Options(shard));
  RewriteJournal(shard / "journal" / "0-of-1.jsonl", [](FinishedTrial& entry) {
    EXPECT_GT(entry.seconds, 0) << entry.label;
    entry.seconds = 1.5 + static_cast<double>(entry.trial);
  });
  Merge(Counting(), {shard}, out, {});
  const std::vector<FinishedTrial> merged = ReadJournal(out / "journal" / "0-of-1.jsonl");
  EXPECT_EQ(merged.size(), trials_);
  for (const FinishedTrial& entry : merged) {
    EXPECT_EQ(entry.seconds, 1.5 + static_cast<double>(entry.trial));
  }
}

// A merge that was killed while it wrote leaves a part of its journal beside the others.
TEST_F(ShardsTest, MergePassesOverThePartOfAKilledMerge) {
  const fs::path first = Directory("first"), second = Directory("second");
  Run(Counting(), Shard(first, 0, 2));
  Run(Counting(), Shard(second, 1, 2));
  const fs::path part = first / "journal" / "0-of-1.jsonl.merge";
  std::ofstream(part) << "{\"point\": 1, \"la";
  Merge(Counting(), {first, second}, first, {});
  EXPECT_FALSE(fs::exists(part));
  EXPECT_EQ(ResultsIn(first), Expected());
  EXPECT_EQ(ReadJournal(first / "journal" / "0-of-1.jsonl").size(), 4u);
}

TEST_F(ShardsTest, MergeOfOtherSettingsNamesTheOption) {
  const fs::path first = Directory("first");
  const fs::path second = Directory("second");
  Run(Counting(), Shard(first, 0, 2));
  settings_.options["rows"] = "3";
  Run(Counting(), Shard(second, 1, 2));
  EXPECT_EQ(ErrorOf([&] {
              Merge(Counting(), {first, second}, Directory("out"), {});
            }),
            "merge: the shards have different settings: --rows is \"2\" in " + first.string() +
                " and \"3\" in " + second.string());
  EXPECT_FALSE(fs::exists(Directory("out")));
}

TEST_F(ShardsTest, MergeNeedsDirectoriesOfTheExperiment) {
  const fs::path shard = Directory("shard");
  Run(Counting(), Options(shard));
  Experiment other = Counting();
  other.name = "other";
  EXPECT_EQ(ErrorOf([&] { Merge(other, {shard}, Directory("out"), {}); }),
            shard.string() + ": holds results of made_up, expected other");
  EXPECT_THROW(Merge(Counting(), {}, Directory("out"), {}), Error);
  EXPECT_THAT(ErrorOf([&] { Merge(Counting(), {Directory("absent")}, Directory("out"), {}); }),
              HasSubstr(Directory("absent").string()));
}

TEST_F(ShardsTest, MergeTakesATrialTwiceOnlyWhenItsRowsAreTheSame) {
  const fs::path whole = Directory("whole");
  const fs::path shard = Directory("shard");
  Run(Counting(), Options(whole));
  Run(Counting(), Shard(shard, 1, 2));
  EXPECT_EQ(ErrorOf([&] {
              Merge(Counting(), {shard, whole}, Directory("same"), {});
            }),
            "merge: trials are in two directories: numbers 1, 3, 5, 7 in " + shard.string() +
                " and " + whole.string() +
                "; expected each trial once; --allow double accepts this and records it");
  EXPECT_FALSE(fs::exists(Directory("same")));
  Merge(Counting(), {shard, whole}, Directory("same"), {}, {"double"});
  EXPECT_THAT(Bytes(Directory("same") / "manifest.json"), HasSubstr("\"double\": \"numbers 1, "));
  EXPECT_EQ(ResultsIn(Directory("same")), Expected());

  const fs::path journal = shard / "journal" / "1-of-2.jsonl";
  RewriteJournal(journal, [](FinishedTrial& entry) {
    for (auto& [table, rows] : entry.rows) {
      for (Row& row : rows) row.back() = "another";
    }
  });
  const std::string message = ErrorOf([&] {
    Merge(Counting(), {shard, whole}, Directory("out"), {});
  });
  EXPECT_THAT(message, HasSubstr("differ from those in " + journal.string()));
  EXPECT_THAT(message, HasSubstr((whole / "journal" / "0-of-1.jsonl").string() + ":"));
}

}  // namespace
}  // namespace numsim::experiments
