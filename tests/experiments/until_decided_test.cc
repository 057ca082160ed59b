// Runs that add seeds until their claims are decided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/experiments/run_fixture.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

class UntilDecided : public RunFixture {
 protected:
  // Its claim: the sum of a trial exceeds `margin`. The outcomes 0.9, 1.0, 1.1, 0.9, ... have a
  // mean of 1.
  Experiment Claiming(double margin) {
    Experiment experiment = Counting();
    ClaimSpec claim;
    claim.id = "made_up/large";
    claim.contrast = "outcome minus 0";
    claim.margin = {.value = margin, .unit = "units", .justification = "made up"};
    claim.evidence = [](const Settings&, const Tables& tables) {
      SeedValues values;
      for (const Frame& seed : Frame(tables.at("values")).By({"seed"})) {
        values[seed.Text("seed")] = 0.9 + 0.1 * (static_cast<int>(seed.Number("seed")) % 3);
      }
      return AgainstReference("outcome", values, 0);
    };
    experiment.claims = {claim};
    return experiment;
  }
  RunReport RunUpTo(int max_seeds, double margin, const std::string& name) {
    settings_ = MakeSettings(MadeUpExperiment(), "quick", 5, 3, {}, max_seeds);
    return Run(Claiming(margin), Options(Directory(name)));
  }
};

TEST_F(UntilDecided, StopsAtTheFirstLookThatDecides) {
  const RunReport report = RunUpTo(20, 0.1, "early");
  EXPECT_EQ(report.judged.at(0).result.verdict, Verdict::kSupported);
  EXPECT_EQ(report.judged.at(0).result.seeds, 3);
  EXPECT_EQ(report.trials_total, 9u);  // three shapes
  EXPECT_EQ(calls_, 9);
}

TEST_F(UntilDecided, AddsSeedsAndKeepsFinishedTrials) {
  const RunReport report = RunUpTo(20, 0.93, "late");
  EXPECT_EQ(report.judged.at(0).result.verdict, Verdict::kSupported);
  const int seeds = report.judged.at(0).result.seeds;
  EXPECT_GT(seeds, 3);
  EXPECT_LE(seeds, 20);
  EXPECT_EQ(calls_, 3 * seeds);
  EXPECT_EQ(report.trials_run, static_cast<size_t>(3 * seeds));
  EXPECT_EQ(report.judged.at(0).result.alpha, 0.05 / 4);  // looks at 3, 6, 11 and 20
}

TEST_F(UntilDecided, EndsInconclusiveAtTheMostSeeds) {
  const RunReport report = RunUpTo(6, 1, "never");
  EXPECT_EQ(report.judged.at(0).result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(report.judged.at(0).result.seeds, 6);
  EXPECT_THAT(report.summary, HasSubstr("6 seeds"));
}

TEST_F(UntilDecided, GivesTheSameBytesAfterAnInterruptionAndWhenRedrawn) {
  RunUpTo(20, 0.93, "whole");
  const auto out = Directory("broken");
  fail_at_ = "cde seed=9";  // of the second look
  EXPECT_THROW(Run(Claiming(0.93), Options(out)), Error);
  fail_at_.clear();
  Run(Claiming(0.93), Resume(out));
  EXPECT_EQ(ResultsIn(out), ResultsIn(Directory("whole")));
  EXPECT_EQ(Bytes(out / "verdicts.csv"), Bytes(Directory("whole") / "verdicts.csv"));
  const std::string summary = Bytes(out / "summary.txt");
  Redraw(Claiming(0.93), out);
  EXPECT_EQ(Bytes(out / "summary.txt"), summary);
}

// Three trials per seed; looks at 3, 6, 11 and 20 seeds.
TEST_F(UntilDecided, ShardsUpToALookMergeToTheBytesOfOneRun) {
  const int seeds = RunUpTo(20, 0.9, "whole").judged.at(0).result.seeds;
  ASSERT_EQ(seeds, 11);
  calls_ = 0;
  const auto run_look = [&](size_t look) {
    for (int shard = 0; shard < 2; ++shard) {
      RunOptions options = Shard(Directory(shard == 0 ? "a" : "b"), shard, 2);
      options.look = look;
      options.resume = true;
      Run(Claiming(0.9), options);
    }
  };
  const auto merge = [&] {
    return Merge(Claiming(0.9), {Directory("a"), Directory("b")}, Directory("out"), {});
  };
  run_look(1);
  EXPECT_EQ(calls_, 9);
  const RunReport first = merge();
  EXPECT_EQ(first.next_look, 2u);
  EXPECT_EQ(first.judged.at(0).result.seeds, 3);
  EXPECT_EQ(first.judged.at(0).result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(first.judged.at(0).result.alpha, 0.05 / 4);
  EXPECT_EQ(merge().next_look, 2u) << "a look can be repeated";
  size_t look = 1;
  RunReport report = first;
  while (report.next_look != 0) {
    EXPECT_EQ(report.next_look, ++look);
    run_look(look);
    report = merge();
  }
  EXPECT_EQ(calls_, 3 * seeds);
  EXPECT_EQ(ResultsIn(Directory("out")), ResultsIn(Directory("whole")));
  EXPECT_EQ(Bytes(Directory("out") / "verdicts.csv"), Bytes(Directory("whole") / "verdicts.csv"));
  EXPECT_EQ(ReadJournal(Directory("out") / "journal" / "0-of-1.jsonl").size(),
            static_cast<size_t>(calls_))
      << "of all looks";
  // Trials beyond the decision count for nothing, as in a run that did not do them.
  run_look(4);
  EXPECT_EQ(calls_, 60);
  EXPECT_EQ(merge().judged.at(0).result.seeds, seeds);
  EXPECT_EQ(ResultsIn(Directory("out")), ResultsIn(Directory("whole")));
}

TEST_F(UntilDecided, MergeNamesTrialsOfABegunLookThatAreMissing) {
  settings_ = MakeSettings(MadeUpExperiment(), "quick", 5, 3, {}, 20);
  for (int shard = 0; shard < 2; ++shard) {
    RunOptions options = Shard(Directory(shard == 0 ? "a" : "b"), shard, 2);
    options.look = shard == 0 ? 2 : 1;
    Run(Claiming(1), options);
  }
  EXPECT_THAT(ErrorOf([&] {
                Merge(Claiming(1), {Directory("a"), Directory("b")}, Directory("out"), {});
              }),
              HasSubstr("merge: 4 of 18 trials are in none of the shards"));
}

TEST_F(UntilDecided, RefusesShardsWithoutALookAndTooFewSeeds) {
  settings_ = MakeSettings(MadeUpExperiment(), "quick", 5, 3, {}, 20);
  RunOptions options = Shard(Directory("shard"), 0, 2);
  EXPECT_THAT(ErrorOf([&] { Run(Claiming(1), options); }),
              HasSubstr("--shard 0/2: with --until-decided, --look says up to which look"));
  options.look = 5;
  EXPECT_THAT(ErrorOf([&] { Run(Claiming(1), options); }),
              HasSubstr("--look 5: expected a look from 1 to 4"));
  EXPECT_THAT(ErrorOf([&] { MakeSettings(MadeUpExperiment(), "quick", 5, 3, {}, 2); }),
              HasSubstr("--max-seeds 2: expected at least the 3 of --seeds"));
}

}  // namespace
}  // namespace numsim::experiments
