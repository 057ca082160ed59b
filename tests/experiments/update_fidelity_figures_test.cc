// The table `cliffs` and the figures of `update-fidelity`, from hand-made tables.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/update_fidelity/cliff.h"
#include "experiments/update_fidelity/update_fidelity.h"
#include "numsim/formats/format_table.h"
#include "tests/experiments/result_tables.h"

namespace numsim::experiments::update_fidelity {
namespace {

// The predictions of a row are those of its format, keys and number of elements. With the same key
// every normal number of e4m3fn has its threshold between 1/31 and 2/31; independent keys pair
// small weights with large updates, which move long before.
TEST(UpdateFidelityCliffs, ArePredictedForTheKeysOfTheirRow) {
  constexpr double kElements = 1 << 20;
  ResultTables results(UpdateFidelity(), {}, 2);
  for (const char* const keys : {"same", "independent"}) {
    for (const int seed : {0, 1}) {
      results.Add("naive_limits",
                  {{"format", "e4m3fn"},
                   {"keys", keys},
                   {"seed", seed},
                   {"elements", kElements},
                   {"unmoved_lr", 0.04},
                   {"least_threshold", 0.033},
                   {"half_norm_lr", 0.05}});
    }
  }
  const Frame cliffs = results.Of("cliffs");
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  ASSERT_EQ(cliffs.Size(), 3u * 4);
  cliffs.ForEach([&](const Frame& row) {
    const bool same = row.Text("keys") == "same";
    const double predicted = row.Number("predicted");
    if (row.Text("predicted_from") == "arrays") {
      EXPECT_EQ(predicted, 0.033);
      EXPECT_EQ(row.Number("measured"), 0.04);
      EXPECT_TRUE(std::isnan(row.Number("expected_movers")));
    } else if (row.Text("limit") == "unmoved") {
      EXPECT_EQ(predicted, UnmovedExpected(format, same, kElements));
      EXPECT_EQ(predicted >= 1 / 31.0, same);
      EXPECT_LE(predicted, 2 / 31.0);
      EXPECT_EQ(row.Number("measured"), 0.04);
      EXPECT_EQ(row.Number("expected_movers"), kElements * MovedShareExpected(format, same, 0.04));
    } else {
      EXPECT_EQ(row.Text("limit"), "half-norm");
      EXPECT_EQ(predicted, HalfNormExpected(format, same));
      EXPECT_EQ(row.Number("measured"), 0.05);
    }
  });
  EXPECT_NE(HalfNormExpected(format, true), HalfNormExpected(format, false));
}

class FidelityFigures : public ::testing::Test {
 protected:
  void Step(const char* rule, const char* keys, double lr, double error, int seed = 0) {
    results_.Add("fidelity",
                 {{"format", "bf16"},
                  {"keys", keys},
                  {"rule", rule},
                  {"lr", lr},
                  {"seed", seed},
                  {"norm_error", error},
                  {"mean_error", 1},
                  {"cosine", 0.5},
                  {"moved_share", 0.25},
                  {"relative_error", 0.125},
                  {"effective_relative_error", 2 * error},
                  {"own_target_ratio", seed == 0 ? 0.5 : 1.25}});
  }
  void Time(int seed, double time) {
    results_.Add("times",
                 {{"format", "bf16"},
                  {"keys", "same"},
                  {"rule", "naive"},
                  {"lr", 1e-3},
                  {"seed", seed},
                  {"ns_per_element", time}});
  }

  ResultTables results_{UpdateFidelity()};
};

// One format, two seeds: the curve is their mean, the band from the least to the greatest.
TEST_F(FidelityFigures, ShowMeanAndRangeOfTheSeeds) {
  for (const char* const rule : {"naive", "note-as-printed", "kahan"}) {
    for (const int seed : {0, 1}) {
      for (const double lr : {1e-3, 1e-2}) Step(rule, "same", lr, lr * (seed == 0 ? 8 : 24), seed);
    }
  }
  Time(0, 1);
  Time(1, 4);
  Tables tables = results_.Finish();
  tables.at("cliffs").rows = {{"bf16", "same", 0, "unmoved", "distribution", 1e-3, 2e-3, "nan"},
                              {"bf16", "same", 0, "half-norm", "distribution", 4e-3, 4e-3, "nan"},
                              {"bf16", "independent", 0, "unmoved", "distribution", 1, 1, "nan"}};
  const std::vector<Figure> figures = results_.experiment().figures(results_.settings(), tables);
  ASSERT_EQ(figures.size(), 3u);
  ASSERT_EQ(figures[0].panels.size(), 4u);
  const std::vector<Series>& series = figures[0].panels[0].series;
  ASSERT_EQ(series.size(), 7u);  // two rules, the note's own target, two limits with a mark each
  EXPECT_EQ(series[0].label, "naive");
  EXPECT_EQ(series[0].x, (std::vector<double>{1e-3, 1e-2}));
  EXPECT_EQ(series[0].low, (std::vector<double>{1e-3 * 8, 1e-2 * 8}));
  EXPECT_EQ(series[0].high, (std::vector<double>{1e-3 * 24, 1e-2 * 24}));
  EXPECT_DOUBLE_EQ(series[0].y[0], 16e-3);
  EXPECT_DOUBLE_EQ(series[0].y[1], 16e-2);
  EXPECT_EQ(series[2].y, (std::vector<double>{0.5, 0.5})) << "the worst seed's own target";
  EXPECT_EQ(series[3].x, (std::vector<double>{1e-3, 1e-3})) << "as measured";
  EXPECT_EQ(series[4].x, std::vector<double>{2e-3}) << "as predicted";
  ASSERT_EQ(figures[1].panels.size(), 4u);
  EXPECT_EQ(figures[1].panels[0].series[0].label, "kahan");
  EXPECT_DOUBLE_EQ(figures[1].panels[0].series[0].y[0], 32e-3);
  EXPECT_EQ(figures[1].panels[0].series[1].y, (std::vector<double>{0.125, 0.125})) << "stored";
  EXPECT_TRUE(figures[1].panels[0].series[1].low.empty()) << "dotted, without a band";
  EXPECT_EQ(figures[2].source_csv, "times.csv");
  ASSERT_EQ(figures[2].panels.size(), 1u);
  EXPECT_EQ(figures[2].panels[0].series[0].y, std::vector<double>{2.5});
  EXPECT_TRUE(figures[2].panels[0].x.log10);
  EXPECT_TRUE(figures[2].panels[0].y.log10);
}

// The panels of a row, one for each choice of the key, can be compared.
TEST_F(FidelityFigures, PanelsOfARowShareTheirAxes) {
  Step("naive", "same", 1e-3, 0.002);
  Step("naive", "independent", 1e-3, 0.2);
  Time(0, 1);
  const std::vector<Figure> figures =
      results_.experiment().figures(results_.settings(), results_.Finish());
  ASSERT_EQ(figures[0].panels.size(), 8u);
  const Panel& same = figures[0].panels[0];
  const Panel& independent = figures[0].panels[1];
  EXPECT_EQ(same.title, "Same key for both draws, as published");
  EXPECT_EQ(same.series[0].y, std::vector<double>{0.002});
  EXPECT_EQ(independent.series[0].y, std::vector<double>{0.2});
  EXPECT_EQ(same.y.low, independent.y.low);
  EXPECT_EQ(same.y.high, independent.y.high);
  EXPECT_LT(same.y.low, 0.002);
  EXPECT_GT(same.y.high, 0.2);
  EXPECT_TRUE(same.series[0].low.empty()) << "one seed has no range";
}

}  // namespace
}  // namespace numsim::experiments::update_fidelity
