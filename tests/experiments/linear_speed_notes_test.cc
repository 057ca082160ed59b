// The crossings and the notes of `linear-speed`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/linear_speed/linear_speed.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments::linear_speed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Table EmptyTable(std::string_view name) {
  Table table;
  for (const TableSpec& spec : LinearSpeed().tables) {
    if (spec.name != name) continue;
    for (const Column& column : spec.columns) table.columns.push_back(column.name);
  }
  return table;
}

// A row of layers.csv.
struct Layer {
  std::string kind, format;
  int dim, tokens;
  double speedup;
  double quantize_share = 0.1;
  std::string backend = "cuda";
  std::string width = "4";
};

Table LayersOf(const std::vector<Layer>& rows) {
  Table table = EmptyTable("layers");
  for (const Layer& row : rows) {
    table.rows.push_back({"a GPU",
                          row.backend,
                          "1",
                          "cuBLASLt",
                          row.kind,
                          row.format,
                          "bf16",
                          "library",
                          row.width,
                          row.dim,
                          row.tokens,
                          1 / row.speedup,
                          0.8,
                          row.quantize_share,
                          "0",
                          0.2 - row.quantize_share,
                          100 * (1 - 1 / row.speedup),
                          row.speedup,
                          "8"});
  }
  return table;
}

Table CrossingsOf(const Table& layers) {
  Table table = EmptyTable("crossings");
  table.rows = CrossingRows(layers);
  return table;
}

TEST(FindCrossing, IsTheSmallestSizeAfterTheLastThatSavesNothing) {
  const std::vector<double> sizes = {1024, 2048, 4096, 8192};
  const Crossing crossing = FindCrossing(sizes, std::vector<double>{5, -10, 30, 40});
  EXPECT_EQ(crossing.size, 4096);
  EXPECT_DOUBLE_EQ(crossing.between, 2048 * std::exp2(0.25));
  EXPECT_FALSE(crossing.always);
  // Nothing saved is no saving.
  const Crossing zero = FindCrossing(sizes, std::vector<double>{0, 10, 30, 40});
  EXPECT_EQ(zero.size, 2048);
  EXPECT_EQ(zero.between, 1024);
  EXPECT_FALSE(zero.always);
}

TEST(FindCrossing, TellsAllFromNone) {
  const std::vector<double> sizes = {1024, 2048};
  const Crossing all = FindCrossing(sizes, std::vector<double>{1, 2});
  EXPECT_EQ(all.size, 1024);
  EXPECT_EQ(all.between, 1024);
  EXPECT_TRUE(all.always);
  const Crossing none = FindCrossing(sizes, std::vector<double>{1, -2});
  EXPECT_TRUE(std::isnan(none.size));
  EXPECT_TRUE(std::isnan(none.between));
  EXPECT_FALSE(none.always);
}

TEST(LinearSpeedCrossings, AreAlongDimForEachNumberOfTokensAndTheOtherWayRound) {
  const Table crossings = CrossingsOf(LayersOf({{"standard", "bf16", 4096, 65536, 1},
                                                {"switchback", "int8", 4096, 8192, 1.25},
                                                {"switchback", "int8", 1024, 8192, 0.8},
                                                {"switchback", "int8", 1024, 65536, 1.25},
                                                {"switchback", "int8", 4096, 65536, 1.5}}));
  ASSERT_EQ(crossings.rows.size(), 4u);
  EXPECT_EQ(crossings.Text(0, "along"), "dim");
  EXPECT_EQ(crossings.Number(0, "at"), 8192);
  EXPECT_EQ(crossings.Number(0, "size"), 4096);
  // Saves -25 % and 20 %: 5/9 of the way.
  EXPECT_DOUBLE_EQ(crossings.Number(0, "between"), 1024 * std::exp2(2 * 25.0 / 45));
  EXPECT_EQ(crossings.Number(0, "speedup_low"), 0.8);
  EXPECT_EQ(crossings.Number(0, "speedup_high"), 1.25);
  EXPECT_EQ(crossings.Number(1, "at"), 65536);
  EXPECT_EQ(crossings.Number(1, "always"), 1);
  EXPECT_EQ(crossings.Text(2, "along"), "tokens");
  EXPECT_EQ(crossings.Number(2, "at"), 1024);
  EXPECT_EQ(crossings.Number(2, "size"), 65536);
  EXPECT_EQ(crossings.Number(3, "at"), 4096);
  EXPECT_EQ(crossings.Number(3, "size"), 8192);
}

TEST(LinearSpeedCrossings, LayersWithoutAStandardHaveNone) {
  Table layers = LayersOf({{"switchback", "int8", 1024, 8192, 1}});
  layers.rows[0][16] = "nan";
  EXPECT_TRUE(CrossingsOf(layers).rows.empty());
}

TEST(LinearSpeedCrossings, AreTextOnADeviceAlone) {
  std::vector<Layer> rows = {{"switchback", "int8", 1024, 8192, 0.8},
                             {"switchback", "int8", 4096, 8192, 1.25},
                             {"llm-int8", "int8", 4096, 8192, 0.5}};
  const std::string notes = CrossingNotes(CrossingsOf(LayersOf(rows)));
  EXPECT_THAT(notes,
              HasSubstr("switchback   8192 tokens: dim    from 2212 on (0.80 to 1.25 times)"));
  EXPECT_THAT(notes, HasSubstr("llm-int8     8192 tokens: dim    at none (0.50 to 0.50 times)"));
  EXPECT_THAT(notes, HasSubstr("switchback   4096 dim   : tokens at all"));
  for (Layer& row : rows) row.backend = "avx3";
  EXPECT_EQ(CrossingNotes(CrossingsOf(LayersOf(rows))), "");
}

TEST(LinearSpeedGoals, AreToldAtTheirSizeOnADevice) {
  const Table layers = LayersOf({{"standard", "bf16", 4096, 65536, 1, 0},
                                 {"switchback", "int8", 4096, 65536, 1.14, 0.16},
                                 {"switchback", "e4m3fn", 4096, 65536, 9, 0.1, "avx3"},
                                 {"tensor-wise", "e4m3fn", 4096, 65536, 9, 0.1, "cuda", "1"},
                                 {"tensor-wise", "e4m3fn", 4096, 8192, 9}});
  const std::string notes = GoalNotes(layers);
  EXPECT_THAT(notes, HasSubstr("switchback int8: 1.140 times (goal 1.15), quantising 16.0 %"));
  EXPECT_THAT(notes, Not(HasSubstr("e4m3fn")));  // other backend, width, tokens
  const Table others = LayersOf({{"switchback", "int8", 1024, 1024, 2}});
  EXPECT_EQ(GoalNotes(others), "");
}

TEST(LinearSpeedNotes, HaveATableOfTimesAndSayThatItIsOneMeasurement) {
  Tables tables = {{"layers", LayersOf({{"switchback", "int8", 4096, 65536, 1.25}})}};
  tables["crossings"] = CrossingsOf(tables["layers"]);
  const auto notes = [&](int seeds) {
    return LinearSpeed().notes(MakeSettings(LinearSpeed(), "quick", 0, seeds, {}), tables);
  };
  EXPECT_THAT(notes(1), HasSubstr("One measurement"));
  EXPECT_THAT(notes(3), Not(HasSubstr("One measurement")));
  EXPECT_THAT(notes(3), HasSubstr("Timed on a GPU"));
  EXPECT_THAT(
      notes(3),
      HasSubstr("switchback   4096   65536    800.000    80.0%    10.0%    0.0% 10.0%   20.0%"));
}

TEST(LinearSpeedGoals, FiguresOfOneNumberOfTokensShowThatOfTheGoals) {
  const auto with = [](const std::string& tokens) {
    return FigureTokens(MakeSettings(LinearSpeed(), "quick", 0, 1, {{"tokens", tokens}}));
  };
  EXPECT_EQ(with("131072,8192,65536"), "65536");
  EXPECT_EQ(with("131072,8192"), "131072");
}

}  // namespace
}  // namespace numsim::experiments::linear_speed
