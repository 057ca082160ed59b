// Outcomes, claims and figures of `fp8-interventions`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "tests/experiments/fp8_interventions_fixture.h"
#include "tests/support/special_values.h"

namespace numsim::experiments::fp8_interventions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kChance = 4;

// The claims by their number in the summary.
enum ClaimNumber { kNothing, kClip, kQkNorm, kLayerScale, kFeatures, kRemainder };

class Outcomes : public ::testing::Test {
 protected:
  // Losses of seeds 0, 1, ...; infinite: diverged.
  void Add(const std::string& intervention,
           const std::string& format,
           const std::vector<double>& losses) {
    for (size_t seed = 0; seed < losses.size(); ++seed) {
      AddRow("final",
             {{"intervention", intervention},
              {"format", format},
              {"seed", FormatCell(uint64_t{seed})},
              {"status", losses[seed] == kInfinity ? "diverged" : "finished"},
              {"chance_loss", FormatCell(kChance)},
              {"start_loss", "5"},
              {"valid_loss", FormatCell(losses[seed])},
              {"zero_shot", losses[seed] == kInfinity ? "nan" : "0.25"}});
    }
  }
  void AddFeature(const std::string& intervention, int block, double mean) {
    AddRow("features",
           {{"intervention", intervention},
            {"format", "bf16"},
            {"seed", "0"},
            {"when", "end"},
            {"tower", "image"},
            {"block", FormatCell(block)},
            {"mean_abs", "1000"},
            {"mean_abs_rest", FormatCell(mean)}});
  }
  // bf16 as the paper has it: it learns with each intervention.
  void AddBaselines() {
    for (const char* const intervention : {"none", "clip", "qk-norm"}) {
      Add(intervention, "bf16", {2, 2.02, 1.98});
    }
    Add("layer-scale", "bf16", {2.3, 2.32, 2.28});
  }

  const Table& Finish() {
    tables_.clear();
    for (const TableSpec& spec : Fp8Interventions().tables) {
      Table& table = tables_[spec.name];
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
      table.rows = rows_[spec.name];
    }
    Derive(SettingsWith({}, seeds_), tables_);
    return tables_.at("outcomes");
  }
  size_t RowOf(const std::string& intervention, const std::string& format) const {
    const Table& table = tables_.at("outcomes");
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (table.Text(r, "intervention") == intervention && table.Text(r, "format") == format) {
        return r;
      }
    }
    ADD_FAILURE() << intervention << " " << format;
    return 0;
  }
  std::string Verdict(const std::string& intervention, const std::string& format) {
    const Table& table = Finish();
    return table.Text(RowOf(intervention, format), "verdict");
  }
  Summary Summarised() {
    Finish();
    return Summarise(SettingsWith({{"plant-point", plant_}}, seeds_), tables_);
  }
  std::string Claimed(ClaimNumber claim) { return Summarised().claims.at(claim).verdict; }
  std::string Measured(ClaimNumber claim) { return Summarised().claims.at(claim).measured; }

  std::map<std::string, std::vector<std::vector<std::string>>> rows_;  // by table
  Tables tables_;
  int seeds_ = 3;
  std::string plant_;  // --plant-point

 private:
  // Cells that are not named are nan.
  void AddRow(const std::string& table, const std::map<std::string, std::string>& cells) {
    for (const TableSpec& spec : Fp8Interventions().tables) {
      if (spec.name != table) continue;
      std::vector<std::string> row;
      for (const Column& column : spec.columns) {
        const auto cell = cells.find(column.name);
        row.push_back(cell == cells.end() ? "nan" : cell->second);
      }
      rows_[table].push_back(std::move(row));
    }
  }
};

TEST_F(Outcomes, GapsArePairedBySeedWithTheirIntervals) {
  AddBaselines();
  Add("layer-scale", "e2m3", {2.4, 2.44, 2.36});
  const Table& table = Finish();
  const size_t r = RowOf("layer-scale", "e2m3");
  // Differences 0.1, 0.12, 0.08: deviation 0.02, t of two degrees of freedom 4.3027.
  const double half = 4.302652729911275 * 0.02 / std::sqrt(3.0);
  EXPECT_NEAR(table.Number(r, "gap"), 0.1, 1e-12);
  EXPECT_NEAR(table.Number(r, "gap_low"), 0.1 - half, 1e-5);
  EXPECT_NEAR(table.Number(r, "gap_high"), 0.1 + half, 1e-5);
  EXPECT_NEAR(table.Number(r, "gap_none"), 0.4, 1e-12);
  EXPECT_NEAR(table.Number(r, "valid_loss"), 2.4, 1e-12);
  EXPECT_EQ(table.Number(r, "zero_shot"), 0.25);
  EXPECT_EQ(table.Text(r, "seeds"), "3");
  EXPECT_EQ(table.Text(r, "verdict"), "behind");
  EXPECT_EQ(table.Number(RowOf("none", "bf16"), "gap"), 0);
  EXPECT_EQ(table.Text(RowOf("none", "bf16"), "verdict"), "stable");
}

TEST_F(Outcomes, VerdictsInEveryDirection) {
  AddBaselines();
  Add("none", "a", {2.1, 2.12, 1.9});   // the interval holds 0
  Add("none", "b", {1.5, 1.52, 1.48});  // better
  Add("none", "c", {2.5, 2.52, 2.48});
  Add("none", "d", {2, 3.9, 2});     // one seed of three
  Add("none", "e", {2, 3.9, 3.81});  // two
  Add("none", "f", {2, kInfinity, 2});
  Add("none", "g", {3.79, 3.79, 3.79});  // just below 95 % of chance
  Add("none", "h", {std::nan(""), std::nan(""), 2});
  const std::map<std::string, std::string> expected = {{"a", "stable"},
                                                       {"b", "stable"},
                                                       {"c", "behind"},
                                                       {"d", "unsteady"},
                                                       {"e", "collapsed"},
                                                       {"f", "diverged"},
                                                       {"g", "behind"},
                                                       {"h", "collapsed"}};
  for (const auto& [format, verdict] : expected)
    EXPECT_EQ(Verdict("none", format), verdict) << format;
  const Table& table = tables_.at("outcomes");
  EXPECT_EQ(table.Text(RowOf("none", "d"), "collapsed"), "1");
  EXPECT_EQ(table.Text(RowOf("none", "f"), "diverged"), "1");
  EXPECT_EQ(table.Text(RowOf("none", "f"), "collapsed"), "0");
  EXPECT_EQ(table.Text(RowOf("none", "f"), "gap"), "inf");
}

// Half of the seeds is enough.
TEST_F(Outcomes, CollapsedIsWhereAtLeastHalfOfTheSeedsAre) {
  seeds_ = 2;
  Add("none", "bf16", {2, 2});
  Add("none", "e2m3", {2, 3.9});
  EXPECT_EQ(Verdict("none", "e2m3"), "collapsed");
  rows_.clear();
  seeds_ = 4;
  Add("none", "bf16", {2, 2, 2, 2});
  Add("none", "e2m3", {2, 3.9, 2, 2});
  Add("none", "e3m2", {2, 3.9, 2, 3.9});
  EXPECT_EQ(Verdict("none", "e2m3"), "unsteady");
  EXPECT_EQ(Verdict("none", "e3m2"), "collapsed");
}

// The start of a model may lie above chance: what falls to it has learnt nothing.
TEST_F(Outcomes, CollapseIsJudgedAgainstChanceAndNotAgainstTheStart) {
  AddBaselines();
  Add("none", "e2m3", {4, 4, 4});
  EXPECT_EQ(Verdict("none", "e2m3"), "collapsed");
}

TEST_F(Outcomes, OfADivergedBaselineThereIsNoGap) {
  Add("none", "bf16", {2, kInfinity, 2});
  Add("none", "e2m3", {2, 2, 2});
  const Table& table = Finish();
  EXPECT_EQ(table.Text(RowOf("none", "e2m3"), "gap"), "nan");
  EXPECT_EQ(table.Text(RowOf("none", "bf16"), "verdict"), "diverged");
}

TEST_F(Outcomes, ClaimsHoldWhereThePaperIsReproduced) {
  AddBaselines();
  for (const char* const intervention : {"none", "clip", "qk-norm"}) {
    Add(intervention, "e4m3fn/e5m2", {4, kInfinity, 4});
  }
  Add("layer-scale", "e4m3fn/e5m2", {2.4, 2.42, 2.38});
  for (int block = 0; block < 3; ++block) {
    AddFeature("none", block, 1 + 2 * block);
    AddFeature("layer-scale", block, 1);
  }
  for (const ClaimNumber claim : {kNothing, kClip, kQkNorm, kLayerScale, kFeatures, kRemainder}) {
    EXPECT_EQ(Claimed(claim), "holds") << claim << Measured(claim);
  }
  EXPECT_THAT(Measured(kNothing), HasSubstr("1 of 3 seeds diverged"));
}

TEST_F(Outcomes, UnderAPlantedActivationNoClaimHoldsMoreThanInPart) {
  plant_ = "*blocks.0.mlp.down";
  AddBaselines();
  Add("none", "e4m3fn/e5m2", {4, 4, 4});
  Add("layer-scale", "e4m3fn/e5m2", {2.4, 2.42, 2.38});
  for (int block = 0; block < 3; ++block) {
    AddFeature("none", block, 1 + 2 * block);
    AddFeature("layer-scale", block, 1);
  }
  for (const ClaimNumber claim : {kNothing, kLayerScale, kFeatures}) {
    EXPECT_EQ(Claimed(claim), "holds in part") << claim;
    EXPECT_THAT(Measured(claim), HasSubstr("is planted"));
  }
  EXPECT_EQ(Claimed(kRemainder), "holds");
  Add("none", "e2m3", {2, 2, 2});
  rows_["features"].clear();
  AddFeature("none", 0, 1);
  AddFeature("layer-scale", 0, 1);
  EXPECT_EQ(Claimed(kFeatures), "does not hold");
}

TEST_F(Outcomes, FailureOfPoorerFormatsAloneHoldsInPart) {
  AddBaselines();
  Add("clip", "e4m3fn/e5m2", {2, 2, 2});
  Add("clip", "e2m3", {4, 4, 4});
  EXPECT_EQ(Claimed(kClip), "holds in part");
  EXPECT_THAT(Measured(kClip), HasSubstr("not among them"));
  EXPECT_EQ(Claimed(kQkNorm), "not measured");
}

TEST_F(Outcomes, FailureDoesNotHoldWhereNoneFails) {
  AddBaselines();
  Add("none", "e4m3fn/e5m2", {2.5, 2.5, 2.5});
  EXPECT_EQ(Claimed(kNothing), "does not hold");
}

TEST_F(Outcomes, NothingIsClaimedWhereBf16FailsInOneSeed) {
  AddBaselines();
  Finish();
  const size_t loss = tables_.at("final").Column("valid_loss");
  rows_["final"][0].at(loss) = FormatCell(kChance);  // bf16 without intervention, seed 0
  Add("none", "e4m3fn/e5m2", {4, 4, 4});
  Add("layer-scale", "e4m3fn/e5m2", {2, 2, 2});
  EXPECT_EQ(Claimed(kNothing), "not measured");
  EXPECT_EQ(Claimed(kLayerScale), "not measured");
  EXPECT_EQ(Claimed(kRemainder), "not measured");
}

TEST_F(Outcomes, LayerScaleInEveryDirection) {
  AddBaselines();
  EXPECT_EQ(Claimed(kLayerScale), "not measured");
  Add("none", "e3m3", {2, 2, 2});
  Add("layer-scale", "e3m3", {2, 2, 2});
  EXPECT_EQ(Claimed(kLayerScale), "holds in part");  // there was nothing to save
  Add("none", "e2m3", {4, 4, 4});
  Add("layer-scale", "e2m3", {2, 2, 2});
  EXPECT_EQ(Claimed(kLayerScale), "holds");
  Add("none", "e3m2", {4, 4, 4});
  Add("layer-scale", "e3m2", {4, 2, 2});
  EXPECT_EQ(Claimed(kLayerScale), "holds in part");
  rows_["final"].clear();
  AddBaselines();
  Add("none", "e3m2", {4, 4, 4});
  Add("layer-scale", "e3m2", {4, 4, 4});
  EXPECT_EQ(Claimed(kLayerScale), "does not hold");
}

TEST_F(Outcomes, FeaturesInEveryDirection) {
  AddBaselines();
  EXPECT_EQ(Claimed(kFeatures), "not measured");
  AddFeature("none", 0, 1);
  AddFeature("none", 1, 1.9);
  AddFeature("layer-scale", 0, 1);
  AddFeature("layer-scale", 1, 1);
  EXPECT_EQ(Claimed(kFeatures), "does not hold");
  rows_["features"].clear();
  AddFeature("none", 0, 3);
  AddFeature("none", 1, 2.5);  // large, but not for later blocks
  AddFeature("layer-scale", 0, 1);
  AddFeature("layer-scale", 1, 1);
  EXPECT_EQ(Claimed(kFeatures), "does not hold");
}

TEST_F(Outcomes, RemainderInEveryDirection) {
  AddBaselines();  // layer-scale costs 0.3
  EXPECT_EQ(Claimed(kRemainder), "not measured");
  Add("layer-scale", "e3m3", {2.5, 2.52, 2.48});
  EXPECT_EQ(Claimed(kRemainder), "holds");
  Add("layer-scale", "e2m3", {3, 3.02, 2.98});  // 1.0 behind, of it 0.7 by the format
  EXPECT_EQ(Claimed(kRemainder), "holds in part");
  rows_["final"].clear();
  AddBaselines();
  Add("layer-scale", "e2m3", {3, 3.02, 2.98});
  EXPECT_EQ(Claimed(kRemainder), "does not hold");
  rows_["final"].clear();
  AddBaselines();
  Add("layer-scale", "e2m3", {1.9, 1.9, 1.9});  // nothing remains
  Add("layer-scale", "e3m3", {1.9, 2.7, 2.1});  // nothing but noise
  EXPECT_EQ(Claimed(kRemainder), "not measured");
}

TEST_F(Outcomes, NotesSayWhatWasTurnedUp) {
  plant_ = "*blocks.0.mlp.down";
  AddBaselines();
  Add("qk-norm+layer-scale", "bf16", {2, 2, 2});
  Add("qk-norm+layer-scale", "e2m3", {2, 2, 2});
  Add("none", "e2m3", {4, 2, 2});
  const std::string notes = Summarised().notes;
  EXPECT_THAT(notes, HasSubstr("500 added to channel 3 at *blocks.0.mlp.down"));
  EXPECT_THAT(notes, HasSubstr("0 trainings diverged and 1 collapsed"));
  EXPECT_THAT(notes, HasSubstr("bf16, layer-scale: loss 2.300"));
  EXPECT_THAT(notes, HasSubstr("\n  qk-norm+layer-scale, e2m3: loss 2.000"));
  EXPECT_THAT(notes, Not(HasSubstr("--seeds")));
  seeds_ = 1;
  EXPECT_THAT(Summarised().notes, HasSubstr("1 seed:"));
}

TEST_F(Outcomes, LadderDrawsFailuresAtTheTopInTheOrderOfTheFormats) {
  AddBaselines();
  Add("none", "e3m3", {2.5, 2.52, 2.48});
  Add("none", "e2m3", {4, 4, 4});
  Finish();
  const std::vector<Figure> figures = Figures(SettingsWith({}, seeds_), tables_);
  ASSERT_EQ(figures.size(), 4u);
  EXPECT_EQ(figures[2].name, "fp8-ladder");
  const Panel& panel = figures[2].panels.at(0);
  EXPECT_EQ(panel.title, "formats: 1 e3m3, 2 e2m3");
  const Series& none = panel.series.at(0);
  EXPECT_EQ(none.label, "none");
  EXPECT_EQ(none.x, (std::vector<double>{1, 2}));
  EXPECT_NEAR(none.y.at(0), 0.5, 1e-12);
  EXPECT_NEAR(none.y.at(1), 1.25 * 2, 1e-12);  // the largest gap, 4 - 2, and a quarter
  EXPECT_EQ(none.high.at(1), none.y.at(1));
}

}  // namespace
}  // namespace numsim::experiments::fp8_interventions
