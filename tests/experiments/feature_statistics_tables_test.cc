// The derived tables of `feature-statistics`, from hand-made rows.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/experiments/feature_statistics_fixture.h"

namespace numsim::experiments::feature_statistics {
namespace {

class FeatureTables : public ::testing::Test {
 protected:
  void AddOutput(
      const std::string& scale, const std::string& seed, int step, int block, double mean_abs) {
    results_.Add("features",
                 {{"size", "2x16"},
                  {"layer_scale", scale},
                  {"seed", seed},
                  {"step", step},
                  {"tower", "image"},
                  {"block", block},
                  {"tensor", "output"},
                  {"mean_abs", mean_abs},
                  {"max_abs", 10 * mean_abs}});
  }
  // The counts and quantiles of a block, in the order of the columns of `maxima`.
  void AddMaxima(const std::string& seed, int block, const std::vector<Cell>& cells) {
    results_.Add("maxima",
                 {{"size", "2x16"},
                  {"layer_scale", "none"},
                  {"seed", seed},
                  {"tower", "image"},
                  {"block", block},
                  {"tensor", "output"},
                  {"steps", "all"},
                  {"forecast", "max"},
                  {"history", 16},
                  {"compared", cells[0]},
                  {"overruns", cells[1]},
                  {"clipped", cells[2]},
                  {"within_2", cells[3]},
                  {"largest_excess", cells[4]},
                  {"change_median", cells[5]},
                  {"change_95", cells[6]}});
  }
  // Returns a cell of the only row of a derived table that has these cells.
  double Number(const std::string& table,
                const std::map<std::string, std::string>& cells,
                const char* column) {
    Frame rows = results_.Of(table);
    for (const auto& [name, value] : cells) rows = rows.Where(name, value);
    EXPECT_EQ(rows.Size(), 1u) << table;
    return rows.Number(column);
  }

  ResultTables results_{FeatureStatistics(), kTiny};
};

TEST_F(FeatureTables, SmoothnessPoolsStepsOfBlocksAndAveragesSeeds) {
  AddMaxima("0", 0, {10, 4, 2, 10, 1.5, 0.25, 0.5});
  AddMaxima("0", 1, {30, 0, 0, 20, 1, 0.75, 1.5});
  AddMaxima("1", 0, {10, 3, 1, 5, 3, 1, 2});
  AddMaxima("1", 1, {0, 0, 0, 0, "nan", "nan", "nan"});
  const auto number = [&](const char* column) { return Number("smoothness", {}, column); };
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
  const auto number = [&](const char* column) {
    return Number("growth", {{"statistic", "mean_abs"}}, column);
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

TEST_F(FeatureTables, DepthWithoutATrainingWithoutLayerScaleIsNotCompared) {
  AddOutput("0", "0", 0, 0, 1);
  EXPECT_TRUE(std::isnan(Number("depth", {{"statistic", "mean_abs"}}, "over_none")));
}

}  // namespace
}  // namespace numsim::experiments::feature_statistics
