// Tests what `update-convergence` derives from its table of losses: the outcomes of runs, the
// cheapest rules, and the verdicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

using ::testing::HasSubstr;

// Losses at steps 0, 5 and 10 of one run.
struct Losses {
  std::string format, rule;
  double start, half, end;
  std::string status = "ok";
  double travel = 0.5;
};

class DerivedTables : public ::testing::Test {
 protected:
  void Add(const Losses& run, const std::string& seed = "0") {
    const double losses[] = {run.start, run.half, run.end};
    for (int i = 0; i < 3; ++i) {
      rows_.push_back({problem_,
                       "adam",
                       run.format,
                       run.rule,
                       lr_,
                       seed,
                       5 * i,
                       losses[i],
                       i == 0 ? Cell("nan") : Cell(run.travel),
                       i == 0 ? "nan" : "0.25",
                       i == 0 ? "nan" : "2",
                       i == 0 ? "nan" : "1",
                       "ok",
                       i == 2 ? run.status : "ok"});
    }
  }
  // A seed in which norm matching falls behind, takes longer and moves less than a master.
  void AddAllRules(int seed) {
    const double noise = 0.1 * (seed % 3);
    const std::string name = std::to_string(seed);
    Add({"fp32", "naive", 100, 40, 0}, name);
    Add({"bf16", "naive", 100, 60, 50}, name);
    Add({"bf16", "stochastic", 100, 40, 0.5 + noise}, name);
    Add({"bf16", "norm-matched", 100, 70, 60 + noise, "ok", 0.3 + noise / 100}, name);
    Add({"bf16", "projection-matched", 100, 40, 2}, name);
    Add({"bf16", "master-fp32", 100, 40, 0.2 + noise, "ok", 1}, name);
  }
  void Finish() {
    for (const TableSpec& spec : UpdateConvergence().tables) {
      Table& table = tables_[spec.name];
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
    }
    tables_.at("losses").rows = rows_;
    UpdateConvergence().derive(MakeSettings(UpdateConvergence(), "quick", 0, 1, {}), tables_);
  }
  const Table& Final() const { return tables_.at("final"); }
  size_t RowOf(const std::string& rule) const {
    for (size_t r = 0; r < Final().rows.size(); ++r) {
      if (Final().Text(r, "rule") == rule && Final().Text(r, "format") != "fp32") return r;
    }
    ADD_FAILURE() << rule;
    return 0;
  }
  double Number(const std::string& rule, const char* column) const {
    return Final().Number(RowOf(rule), column);
  }
  std::string Text(const std::string& rule, const char* column) const {
    return Final().Text(RowOf(rule), column);
  }

  // Returns the verdict on a claim; the other claims do not change it unless it is close.
  ClaimResult ResultOf(const std::string& name, int seeds = 4) const {
    const std::vector<ClaimSpec> claims = UpdateConvergence().claims;
    const Settings settings = MakeSettings(UpdateConvergence(), "quick", 0, seeds, {});
    for (const JudgedClaim& claim : Judge(claims, settings, tables_)) {
      if (claim.spec->id == "update-convergence/" + name) return claim.result;
    }
    ADD_FAILURE() << name;
    return {};
  }

  std::string problem_ = "logistic", lr_ = "1e-05";
  std::vector<Row> rows_;
  Tables tables_;
};

TEST_F(DerivedTables, MeasureGapsInSharesOfTheBaselinesProgress) {
  Add({"fp32", "naive", 10, 4, 2});
  Add({"bf16", "naive", 11, 8, 7});
  Add({"bf16", "master-fp32", 10, 4, 2.4});
  Finish();
  EXPECT_DOUBLE_EQ(Number("naive", "progress"), 3.0 / 8);
  EXPECT_DOUBLE_EQ(Number("naive", "gap"), 5.0 / 8);
  EXPECT_NEAR(Number("naive", "gap_master"), 4.6 / 8, 1e-12);
  EXPECT_DOUBLE_EQ(Number("naive", "gap_growth"), 1.0 / 8);
  EXPECT_EQ(Text("naive", "falls_behind"), "yes");
  // fp32 reaches 6 after 5 * 4 / 6 steps, this rule never.
  EXPECT_EQ(Number("naive", "delay"), std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(Number("master-fp32", "delay"), 1);
  EXPECT_DOUBLE_EQ(Number("naive", "moved_share"), 0.25);
  EXPECT_DOUBLE_EQ(Number("naive", "norm_ratio"), 2);
  EXPECT_EQ(Text("master-fp32", "within_fp32"), "no");
  EXPECT_EQ(Text("master-fp32", "within_master"), "yes");
}

TEST_F(DerivedTables, DelayIsReadBetweenRecordedSteps) {
  Add({"fp32", "naive", 10, 4, 2});  // 6 after 10 / 3 steps
  Add({"bf16", "naive", 10, 8, 4});  // 6 after 7.5
  Finish();
  EXPECT_NEAR(Number("naive", "delay"), 2.25, 1e-12);
}

TEST_F(DerivedTables, WithinOnePercentHoldsAtHalfTimeAndAtTheEnd) {
  Add({"fp32", "naive", 100, 40, 0});
  Add({"bf16", "naive", 100, 40, 1});
  Add({"bf16", "stochastic", 100, 40, 1.01});
  Add({"bf16", "kahan", 100, 41.5, 0});
  Add({"bf16", "norm-matched", 100, 20, -5});
  Finish();
  EXPECT_EQ(Text("naive", "within_fp32"), "yes");
  EXPECT_EQ(Text("stochastic", "within_fp32"), "no");
  EXPECT_EQ(Text("kahan", "within_fp32"), "no");
  EXPECT_EQ(Text("norm-matched", "within_fp32"), "yes");
  EXPECT_EQ(Text("naive", "within_master"), "none");
}

TEST_F(DerivedTables, FallsBehindOnlyWhereTheGapGrows) {
  Add({"fp32", "naive", 100, 40, 0});
  Add({"bf16", "naive", 100, 50, 9});
  Add({"bf16", "stochastic", 100, 50, 10.05});
  Add({"bf16", "kahan", 100, 50, 10.2});
  Add({"bf16", "norm-matched", 100, 50, 1e300, "diverged"});
  Finish();
  EXPECT_EQ(Text("naive", "falls_behind"), "no");
  EXPECT_EQ(Text("stochastic", "falls_behind"), "no");
  EXPECT_EQ(Text("kahan", "falls_behind"), "yes");
  EXPECT_EQ(Text("norm-matched", "falls_behind"), "ended");
}

TEST_F(DerivedTables, GrowthHasToBeCertainOverSeeds) {
  for (const char* const seed : {"0", "1", "2"}) {
    Add({"fp32", "naive", 100, 40, 0}, seed);
    Add({"bf16", "naive", 100, 45, seed[0] == '0' ? 1.0 : 9.0}, seed);
    Add({"bf16", "kahan", 100, 45, seed[0] == '0' ? 8.0 : 9.0}, seed);
  }
  Finish();
  EXPECT_EQ(Number("naive", "seeds"), 3);
  EXPECT_GT(Number("naive", "gap_growth"), kGrowth);
  EXPECT_EQ(Text("naive", "falls_behind"), "no");
  EXPECT_EQ(Text("kahan", "falls_behind"), "yes");
}

TEST_F(DerivedTables, NothingIsComparedWhereTheBaselineMakesNoProgress) {
  Add({"fp32", "naive", 10, 10, 11});
  Add({"bf16", "naive", 10, 10, 10});
  Finish();
  EXPECT_EQ(Text("naive", "within_fp32"), "none");
  EXPECT_EQ(Text("naive", "falls_behind"), "none");
  EXPECT_EQ(tables_.at("cheapest").Text(0, "rule"), "none");
}

TEST_F(DerivedTables, CheapestCountsBytesThenTheOrderOfTheList) {
  Add({"fp32", "naive", 100, 40, 0});
  Add({"bf16", "master-fp32", 100, 40, 0});
  Add({"bf16", "split-master", 100, 40, 0});
  Add({"bf16", "kahan", 100, 40, 0});
  Add({"bf16", "naive", 100, 40, 5});
  Add({"bf16", "note-as-printed", 100, 10, -5});  // at another learning rate: no candidate
  Finish();
  const Table& cheapest = tables_.at("cheapest");
  ASSERT_EQ(cheapest.rows.size(), 1u);
  EXPECT_EQ(cheapest.Text(0, "rule"), "split-master");
  EXPECT_EQ(cheapest.Number(0, "bytes"), 4);
  EXPECT_EQ(cheapest.Text(0, "rule_master"), "split-master");
}

TEST_F(DerivedTables, RunsAreComparedWithTheBaselineOfTheirSeed) {
  Add({"fp32", "naive", 10, 4, 2}, "0");
  Add({"fp32", "naive", 10, 4, 0}, "1");
  Add({"bf16", "naive", 10, 8, 4}, "0");
  Add({"bf16", "naive", 10, 8, 4}, "1");
  Add({"bf16", "naive", 10, 8, 4}, "2");  // without a baseline
  Finish();
  const Frame runs = Frame(tables_.at("runs")).Where("format", "bf16");
  ASSERT_EQ(runs.Size(), 2u);
  EXPECT_DOUBLE_EQ(runs.Number(0, "gap"), 2.0 / 8);
  EXPECT_DOUBLE_EQ(runs.Number(1, "gap"), 4.0 / 10);
  EXPECT_DOUBLE_EQ(runs.Number(0, "gap_growth"), 2.0 / 8 - 4.0 / 8);
}

TEST_F(DerivedTables, ALevelThatIsNotReachedDelaysByAtLeastTheTraining) {
  Add({"fp32", "naive", 10, 4, 2});  // 6 after 10 / 3 steps
  Add({"bf16", "naive", 10, 9, 8});
  Finish();
  const Frame run = Frame(tables_.at("runs")).Where("format", "bf16");
  EXPECT_EQ(run.Number("delay"), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(run.Number("least_delay"), 3, 1e-12);
}

// A training that does not get to half of fp32's progress has a delay of at least the training's
// length, here 1.4 times fp32's steps: it may be above the margin of 0.5, so nothing is excluded.
TEST_F(DerivedTables, ADelayThatIsOnlyBoundedExcludesNothing) {
  const auto verdict_of = [&](double half_of_fp32, double end_of_master) {
    rows_.clear();
    tables_.clear();
    for (int seed = 0; seed < 4; ++seed) {
      const std::string name = std::to_string(seed);
      const double noise = 0.01 * (seed % 3);
      Add({"fp32", "naive", 100, half_of_fp32, 0}, name);
      Add({"bf16", "norm-matched", 100, 95 + noise, 90 + noise}, name);
      Add({"bf16", "master-fp32", 100, half_of_fp32 + noise, end_of_master + noise}, name);
    }
    Finish();
    return ResultOf("norm-slower");
  };
  EXPECT_EQ(verdict_of(10, 0).verdict, Verdict::kSupported) << "a bound above the margin";
  const ClaimResult close = verdict_of(90, 0);
  EXPECT_EQ(close.verdict, Verdict::kNotTested);
  EXPECT_THAT(close.reason, ::testing::HasSubstr("norm-matched does not get to half"));
  const ClaimResult both = verdict_of(90, 80);
  EXPECT_EQ(both.verdict, Verdict::kNotTested);
  EXPECT_THAT(both.reason, ::testing::HasSubstr("master-fp32 does not get to half"));
}

TEST_F(DerivedTables, ClaimsAboutNormMatchingAreSupportedWhereItFails) {
  for (int seed = 0; seed < 4; ++seed) AddAllRules(seed);
  Finish();
  for (const char* const name :
       {"norm-falls-behind", "norm-slower", "norm-weights-move-slower", "master-is-fine"}) {
    EXPECT_EQ(ResultOf(name).verdict, Verdict::kSupported) << name;
  }
  EXPECT_EQ(ResultOf("norm-falls-behind").contrasts.size(), 1u);
  EXPECT_NEAR(ResultOf("norm-falls-behind").contrasts[0].value, 0.3 - 0.002, 1e-9);
  EXPECT_EQ(ResultOf("projection-beats-norm").verdict, Verdict::kSupported);
  EXPECT_EQ(ResultOf("stochastic-beats-projection").verdict, Verdict::kSupported);
  EXPECT_EQ(ResultOf("norm-falls-behind-quadratic").verdict, Verdict::kNotTested);
  EXPECT_EQ(ResultOf("as-printed-falls-behind").verdict, Verdict::kNotTested);
  EXPECT_EQ(ResultOf("kahan-beats-projection").verdict, Verdict::kNotTested);
}

TEST_F(DerivedTables, ClaimsAboutNormMatchingAreContradictedWhereItEqualsAMaster) {
  for (int seed = 0; seed < 4; ++seed) {
    const double noise = 0.01 * (seed % 3);
    const std::string name = std::to_string(seed);
    Add({"fp32", "naive", 100, 40, 0}, name);
    Add({"bf16", "norm-matched", 100, 40, 0.1 + noise, "ok", 1 + noise}, name);
    Add({"bf16", "master-fp32", 100, 40, 0.2 + noise, "ok", 1 - noise}, name);
  }
  Finish();
  for (const char* const name : {"norm-falls-behind", "norm-slower", "norm-weights-move-slower"}) {
    EXPECT_EQ(ResultOf(name).verdict, Verdict::kContradicted) << name;
  }
}

TEST_F(DerivedTables, OneSeedDecidesNothing) {
  AddAllRules(0);
  Finish();
  EXPECT_EQ(ResultOf("norm-falls-behind", 1).verdict, Verdict::kInconclusive);
}

// The gap grows by 1 on average; the interval of 8, 0 and -5 contains 0.
TEST_F(DerivedTables, AnUncertainGrowthDecidesNothing) {
  const double ends[] = {58, 50, 45};
  for (int seed = 0; seed < 3; ++seed) {
    Add({"fp32", "naive", 100, 40, 0}, std::to_string(seed));
    Add({"bf16", "norm-matched", 100, 90, ends[seed]}, std::to_string(seed));
    Add({"bf16", "master-fp32", 100, 40, 0}, std::to_string(seed));
  }
  Finish();
  EXPECT_EQ(Text("norm-matched", "falls_behind"), "no");
  EXPECT_EQ(ResultOf("norm-falls-behind", 3).verdict, Verdict::kInconclusive);
}

// Half of bf16's spacing at 0.02 is 2^-14 = 6.1e-5.
TEST_F(DerivedTables, ClaimsAreTestedOnlyAtRatesThatRoundingLoses) {
  for (const char* const lr : {"0.001", "6.2e-05"}) {
    lr_ = lr;
    for (int seed = 0; seed < 4; ++seed) AddAllRules(seed);
  }
  Finish();
  EXPECT_EQ(ResultOf("norm-falls-behind").verdict, Verdict::kNotTested);
  EXPECT_EQ(ResultOf("norm-falls-behind").reason, "no learning rate is below 6.1e-05 (--lr)");
  lr_ = "6.1e-05";
  for (int seed = 0; seed < 4; ++seed) AddAllRules(seed);
  tables_.clear();
  Finish();
  EXPECT_EQ(ResultOf("norm-falls-behind").contrasts.size(), 1u);
}

TEST_F(DerivedTables, NotesAndFiguresComeFromTheTables) {
  for (int seed = 0; seed < 3; ++seed) AddAllRules(seed);
  Finish();
  const Settings settings = MakeSettings(UpdateConvergence(), "quick", 0, 3, {{"formats", "bf16"}});
  EXPECT_THAT(UpdateConvergence().notes(settings, tables_), HasSubstr("stochastic 2"));
  EXPECT_THAT(UpdateConvergence().notes(settings, tables_),
              HasSubstr("norm-matched               1        0          0         1"));
  const std::vector<Figure> figures = UpdateConvergence().figures(settings, tables_);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "gap-logistic-adam");
  ASSERT_EQ(figures[1].panels.size(), 1u);
  EXPECT_EQ(figures[1].panels[0].series.size(), 6u);
  EXPECT_EQ(figures[1].panels[0].series.back().label, "fp32");
}

}  // namespace
}  // namespace numsim::experiments::update_convergence
