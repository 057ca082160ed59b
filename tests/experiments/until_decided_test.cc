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

TEST_F(UntilDecided, RefusesShardsAndTooFewSeeds) {
  settings_ = MakeSettings(MadeUpExperiment(), "quick", 5, 3, {}, 20);
  EXPECT_THAT(ErrorOf([&] { Run(Claiming(1), Shard(Directory("shard"), 0, 2)); }),
              HasSubstr("--shard 0/2: not with --until-decided"));
  EXPECT_THAT(ErrorOf([&] { MakeSettings(MadeUpExperiment(), "quick", 5, 3, {}, 2); }),
              HasSubstr("--max-seeds 2: expected at least the 3 of --seeds"));
}

}  // namespace
}  // namespace numsim::experiments
