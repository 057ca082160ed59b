// The derived tables and the claims of `feature-statistics`, from hand-made rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/experiments/feature_statistics_fixture.h"

namespace numsim::experiments::feature_statistics {
namespace {

// Hand-made rows of the measured tables; cells that are not named are 0.
using ::testing::HasSubstr;

class FeatureTables : public ::testing::Test {
 protected:
  void Add(const std::string& table, const std::map<std::string, std::string>& cells) {
    for (const TableSpec& spec : TableSpecs()) {
      if (spec.name != table) continue;
      Cells row;
      for (const Column& column : spec.columns) {
        const auto cell = cells.find(column.name);
        row.push_back(cell == cells.end() ? "0" : cell->second);
      }
      rows_[table].push_back(row);
    }
  }
  void AddOutput(
      const std::string& scale, const std::string& seed, int step, int block, double mean_abs) {
    Add("features",
        {{"size", "2x16"},
         {"layer_scale", scale},
         {"seed", seed},
         {"step", FormatCell(step)},
         {"tower", "image"},
         {"block", FormatCell(block)},
         {"tensor", "output"},
         {"mean_abs", FormatCell(mean_abs)},
         {"max_abs", FormatCell(10 * mean_abs)}});
  }
  // Forecasts of one block from histories of so many steps.
  void AddMaxima(const std::string& tensor,
                 const std::string& seed,
                 int block,
                 const std::map<std::string, std::string>& cells,
                 const std::vector<std::string>& histories = {"1", "16"}) {
    for (const std::string& history : histories) {
      for (const std::string forecast : {"max", "mean"}) {
        std::map<std::string, std::string> row = cells;
        row.insert({{"size", "2x16"},
                    {"layer_scale", "none"},
                    {"seed", seed},
                    {"tower", "image"},
                    {"block", FormatCell(block)},
                    {"tensor", tensor},
                    {"steps", "after-warmup"},
                    {"forecast", forecast},
                    {"history", history}});
        Add("maxima", row);
      }
    }
  }
  void Finish() {
    tables_.clear();
    for (const TableSpec& spec : TableSpecs()) {
      Table& table = tables_[spec.name];
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
      table.rows = rows_[spec.name];
    }
    Derive(SettingsWith({}), tables_);
  }
  // Of the row whose cells these are.
  double Number(const std::string& table,
                const std::map<std::string, std::string>& cells,
                const char* column) const {
    const Table& rows = tables_.at(table);
    for (size_t r = 0; r < rows.rows.size(); ++r) {
      if (std::all_of(cells.begin(), cells.end(), [&](const auto& cell) {
            return rows.Text(r, cell.first) == cell.second;
          })) {
        return rows.Number(r, column);
      }
    }
    ADD_FAILURE() << "no such row in " << table;
    return 0;
  }
  // The outputs of the first and the last of two blocks at the end, for seeds 0, 1, ...
  void AddOutputs(const std::string& layer_scale,
                  const std::vector<std::pair<double, double>>& blocks) {
    for (size_t seed = 0; seed < blocks.size(); ++seed) {
      AddOutput(layer_scale, std::to_string(seed), 0, 0, blocks[seed].first);
      AddOutput(layer_scale, std::to_string(seed), 0, 1, blocks[seed].second);
    }
  }
  Claim ClaimAt(size_t i) {
    Finish();
    return Summarise(SettingsWith({}), tables_).claims.at(i);
  }

  std::map<std::string, std::vector<Cells>> rows_;
  Tables tables_;
};

TEST_F(FeatureTables, SmoothnessPoolsStepsOfBlocksAndAveragesSeeds) {
  AddMaxima("output",
            "0",
            0,
            {{"compared", "10"},
             {"overruns", "4"},
             {"clipped", "2"},
             {"within_2", "10"},
             {"largest_excess", "1.5"},
             {"change_median", "0.25"},
             {"change_95", "0.5"}});
  AddMaxima("output",
            "0",
            1,
            {{"compared", "30"},
             {"overruns", "0"},
             {"clipped", "0"},
             {"within_2", "20"},
             {"largest_excess", "1"},
             {"change_median", "0.75"},
             {"change_95", "1.5"}});
  AddMaxima("output",
            "1",
            0,
            {{"compared", "10"},
             {"overruns", "3"},
             {"clipped", "1"},
             {"within_2", "5"},
             {"largest_excess", "3"},
             {"change_median", "1"},
             {"change_95", "2"}});
  AddMaxima("output",
            "1",
            1,
            {{"largest_excess", "nan"}, {"change_median", "nan"}, {"change_95", "nan"}});
  Finish();
  const auto number = [&](const char* column) {
    return Number("smoothness", {{"tensor", "output"}, {"history", "16"}}, column);
  };
  EXPECT_EQ(number("seeds"), 2);
  EXPECT_DOUBLE_EQ(number("overruns"), (4.0 / 40 + 3.0 / 10) / 2);
  EXPECT_LT(number("overruns_low"), number("overruns"));
  EXPECT_DOUBLE_EQ(number("clipped"), (2.0 / 40 + 1.0 / 10) / 2);
  EXPECT_DOUBLE_EQ(number("within_2"), (30.0 / 40 + 5.0 / 10) / 2);
  EXPECT_EQ(number("largest_excess"), 3);
  EXPECT_DOUBLE_EQ(number("change_median"), (0.5 + 1) / 2);
  EXPECT_DOUBLE_EQ(number("change_95"), (1.0 + 2) / 2);
  EXPECT_EQ(number("change_95_worst"), 2);
}

TEST_F(FeatureTables, GrowthIsTheLastRecordOverTheFirstPairedBySeed) {
  AddOutput("none", "0", 0, 0, 1);
  AddOutput("none", "0", 5, 0, 7);
  AddOutput("none", "0", 9, 0, 2);
  AddOutput("none", "1", 0, 0, 2);
  AddOutput("none", "1", 9, 0, 12);
  Finish();
  const auto number = [&](const char* column) {
    return Number("growth", {{"block", "0"}, {"statistic", "mean_abs"}}, column);
  };
  EXPECT_EQ(number("first"), 1.5);
  EXPECT_EQ(number("last"), 7);
  EXPECT_EQ(number("ratio"), 4);  // of 2 and 6
  EXPECT_LT(number("ratio_low"), 4);
  EXPECT_EQ(Number("growth", {{"statistic", "max_abs"}}, "last"), 70);
}

TEST_F(FeatureTables, DepthComparesBlocksAndLayerScalesAtTheEnd) {
  for (const int step : {0, 9}) {
    AddOutput("none", "0", step, 0, 1 + step);
    AddOutput("none", "0", step, 1, 4 + 4 * step);
    AddOutput("0", "0", step, 0, 1);
    AddOutput("0", "0", step, 1, 2);
  }
  Finish();
  const std::map<std::string, std::string> none = {{"layer_scale", "none"},
                                                   {"statistic", "mean_abs"}};
  const std::map<std::string, std::string> zero = {{"layer_scale", "0"}, {"statistic", "mean_abs"}};
  EXPECT_EQ(Number("depth", none, "last_block"), 40);
  EXPECT_EQ(Number("depth", none, "over_first_block"), 4);
  EXPECT_EQ(Number("depth", none, "over_none"), 1);
  EXPECT_EQ(Number("depth", zero, "last_block"), 2);
  EXPECT_EQ(Number("depth", zero, "over_first_block"), 2);
  EXPECT_DOUBLE_EQ(Number("depth", zero, "over_none"), 0.05);
}

TEST_F(FeatureTables, DepthClaimsHoldWhereEverySeedAgrees) {
  AddOutputs("none", {{2, 4}, {2, 5}, {2, 4.5}});
  AddOutputs("0", {{2, 1}, {2, 1.25}, {2, 1}});
  EXPECT_EQ(ClaimAt(3).verdict, "holds");
  EXPECT_EQ(ClaimAt(4).verdict, "holds");
  EXPECT_THAT(ClaimAt(3).basis, HasSubstr("layers x width "));
}

TEST_F(FeatureTables, OneSeedDecidesNoDepthClaim) {
  AddOutputs("none", {{2, 40}});
  AddOutputs("0", {{2, 1}});
  for (const size_t claim : {3u, 4u}) {
    EXPECT_EQ(ClaimAt(claim).verdict, "not measured") << claim;
    EXPECT_THAT(ClaimAt(claim).basis, HasSubstr("1 of 1 undecided")) << claim;
  }
}

TEST_F(FeatureTables, DepthWithoutATrainingWithoutLayerScaleIsNotCompared) {
  AddOutput("0", "0", 0, 0, 1);
  Finish();
  EXPECT_TRUE(std::isnan(Number("depth", {{"layer_scale", "0"}}, "over_none")));
  EXPECT_EQ(ClaimAt(3).verdict, "not measured");
  EXPECT_EQ(ClaimAt(4).verdict, "not measured");
}

TEST_F(FeatureTables, DepthClaimsFailWhereFeaturesDoNotGrow) {
  AddOutputs("none", {{2, 1}, {2, 1.125}});
  AddOutputs("0", {{2, 3}, {2, 3.375}});
  EXPECT_EQ(ClaimAt(3).verdict, "does not hold");
  EXPECT_EQ(ClaimAt(4).verdict, "does not hold");
}

// Both seeds grow on the average, but the interval of (0.5, 2.5) goes below 1.
TEST_F(FeatureTables, DepthClaimNeedsItsInterval) {
  AddOutputs("none", {{2, 1}, {2, 5}});
  EXPECT_EQ(ClaimAt(3).verdict, "not measured");
}

TEST_F(FeatureTables, ForecastsAreJudgedByTheLongestHistoryUpToSixteen) {
  const std::map<std::string, std::string> good = {
      {"compared", "1000"}, {"clipped", "0"}, {"within_2", "1000"}};
  const std::map<std::string, std::string> bad = {
      {"compared", "1000"}, {"clipped", "1000"}, {"within_2", "0"}};
  AddMaxima("mlp-first-x", "0", 0, bad, {"4", "64"});
  AddMaxima("mlp-first-x", "0", 0, good, {"16"});
  for (const size_t claim : {1u, 2u}) EXPECT_EQ(ClaimAt(claim).verdict, "holds") << claim;
  rows_.clear();
  AddMaxima("mlp-first-x", "0", 0, bad, {"1", "17"});
  AddMaxima("mlp-first-x", "0", 0, good, {"4"});
  for (const size_t claim : {1u, 2u}) EXPECT_EQ(ClaimAt(claim).verdict, "holds") << claim;
}

TEST_F(FeatureTables, ClaimsAreJudgedByTheirCriteria) {
  const std::map<std::string, std::string> calm = {{"compared", "1000"},
                                                   {"overruns", "500"},
                                                   {"clipped", "10"},
                                                   {"within_2", "990"},
                                                   {"change_95", "0.99"}};
  AddMaxima("mlp-first-x", "0", 0, calm);
  for (const size_t claim : {0u, 1u, 2u}) EXPECT_EQ(ClaimAt(claim).verdict, "holds") << claim;
  // Weight gradients are no operand: the claims on forecasts do not look at them.
  std::map<std::string, std::string> wild = calm;
  wild["change_95"] = "1.01";
  wild["clipped"] = "11";
  AddMaxima("mlp-first-weight-gradient", "0", 0, wild);
  EXPECT_EQ(ClaimAt(0).verdict, "holds in part");
  EXPECT_EQ(ClaimAt(1).verdict, "holds");
  AddMaxima("mlp-first-g", "0", 0, wild);
  EXPECT_EQ(ClaimAt(1).verdict, "holds in part");
  EXPECT_EQ(ClaimAt(2).verdict, "holds in part");
  rows_.clear();
  wild["clipped"] = "0";
  wild["within_2"] = "989";
  AddMaxima("mlp-first-g", "0", 0, wild);
  for (const size_t claim : {0u, 1u, 2u}) {
    EXPECT_EQ(ClaimAt(claim).verdict, "does not hold") << claim;
  }
  rows_.clear();
  for (const size_t claim : {0u, 1u, 2u}) {
    EXPECT_EQ(ClaimAt(claim).verdict, "not measured") << claim;
  }
}

}  // namespace
}  // namespace numsim::experiments::feature_statistics
