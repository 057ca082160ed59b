// Tests what `update-convergence` derives from its table of losses: intervals, verdicts, the
// cheapest rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/core/settings.h"
#include "experiments/update_convergence/outcomes.h"
#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

using ::testing::HasSubstr;

// Losses at steps 0, 5 and 10 of one run.
struct Losses {
  std::string format, rule;
  double start, half, end;
  std::string status = "ok";
};

class DerivedTables : public ::testing::Test {
 protected:
  void Add(const Losses& run, const std::string& seed = "0") {
    const double losses[] = {run.start, run.half, run.end};
    for (int i = 0; i < 3; ++i) {
      rows_.push_back({"quadratic",
                       "adam",
                       run.format,
                       run.rule,
                       "0.01",
                       seed,
                       5 * i,
                       losses[i],
                       i == 0 ? "nan" : "0.5",
                       i == 0 ? "nan" : "0.25",
                       i == 0 ? "nan" : "2",
                       i == 0 ? "nan" : "1",
                       "ok",
                       i == 2 ? run.status : "ok"});
    }
  }
  // A seed in which norm- and projection-matched fall behind.
  void AddAllRules(const std::string& seed) {
    Add({"fp32", "naive", 100, 40, 0}, seed);
    Add({"bf16", "naive", 100, 60, 50}, seed);
    Add({"bf16", "stochastic", 100, 40, 0.5}, seed);
    Add({"bf16", "norm-matched", 100, 50, 30}, seed);
    Add({"bf16", "projection-matched", 100, 40, 2}, seed);
  }
  void Finish() {
    for (const TableSpec& spec : UpdateConvergence().tables) {
      Table& table = tables_[spec.name];
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
    }
    tables_.at("losses").rows = rows_;
    Derive(MakeSettings(UpdateConvergence(), "quick", 0, 1, {}), tables_);
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

// Both fall behind, but one seed cannot tell whether the gap grew by chance.
TEST_F(DerivedTables, OneSeedDoesNotDecideWhatFallsBehind) {
  AddAllRules("0");
  Finish();
  EXPECT_EQ(Text("norm-matched", "falls_behind"), "yes");
  const Settings settings = MakeSettings(UpdateConvergence(), "quick", 0, 1, {{"formats", "bf16"}});
  const Claim claim = Summarise(settings, tables_).claims[1];
  EXPECT_EQ(claim.verdict, "not measured");
  EXPECT_THAT(claim.basis, HasSubstr("1 of 1 undecided: one seed gives no interval"));
  EXPECT_THAT(claim.basis, HasSubstr("240 steps, 1 seed"));
}

// The gap grows by 1 on average; the interval of 8, 0 and -5 contains 0.
TEST_F(DerivedTables, AnUncertainGrowthDecidesNothing) {
  const double ends[] = {58, 50, 45};
  for (int seed = 0; seed < 3; ++seed) {
    Add({"fp32", "naive", 100, 40, 0}, std::to_string(seed));
    Add({"bf16", "norm-matched", 100, 90, ends[seed]}, std::to_string(seed));
  }
  Finish();
  EXPECT_EQ(Text("norm-matched", "falls_behind"), "no");
  const Settings settings = MakeSettings(UpdateConvergence(), "quick", 0, 3, {{"formats", "bf16"}});
  EXPECT_EQ(Summarise(settings, tables_).claims[1].verdict, "not measured");
}

TEST_F(DerivedTables, SummaryAndFiguresComeFromTheTables) {
  for (const char* const seed : {"0", "1", "2"}) AddAllRules(seed);
  Finish();
  const Settings settings = MakeSettings(UpdateConvergence(), "quick", 0, 3, {{"formats", "bf16"}});
  EXPECT_EQ(OutcomesOf(settings, tables_).configurations.size(), 1u);
  const Summary summary = Summarise(settings, tables_);
  ASSERT_EQ(summary.claims.size(), 7u);
  EXPECT_EQ(summary.claims[0].verdict, "not measured");  // as printed
  EXPECT_EQ(summary.claims[1].verdict, "holds");         // norm
  EXPECT_EQ(summary.claims[2].verdict, "holds");         // projection
  EXPECT_THAT(summary.notes, HasSubstr("stochastic 2"));
  const std::vector<Figure> figures = Figures(settings, tables_);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "gap-quadratic-adam");
  ASSERT_EQ(figures[1].panels.size(), 1u);
  EXPECT_EQ(figures[1].panels[0].series.size(), 5u);
  EXPECT_EQ(figures[1].panels[0].series.back().label, "fp32");
}

}  // namespace
}  // namespace numsim::experiments::update_convergence
