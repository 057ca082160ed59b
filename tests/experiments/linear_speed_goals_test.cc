// Tests what `linear-speed` says of a GPU, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/core/settings.h"
#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {
namespace {

using ::testing::HasSubstr;

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
                          FormatCell(row.dim),
                          FormatCell(row.tokens),
                          FormatCell(1 / row.speedup),
                          FormatCell(0.8),
                          FormatCell(row.quantize_share),
                          "0",
                          FormatCell(0.2 - row.quantize_share),
                          FormatCell(100 * (1 - 1 / row.speedup)),
                          FormatCell(row.speedup),
                          "8"});
  }
  return table;
}

Table CrossingsOf(const Table& layers) {
  Table table = EmptyTable("crossings");
  DeriveCrossings(layers, table);
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

TEST(LinearSpeedGoals, AreJudgedAtTheirSize) {
  const Table layers = LayersOf({{"standard", "bf16", 4096, 65536, 1, 0},
                                 {"switchback", "int8", 4096, 65536, 1.14, 0.16},
                                 {"switchback", "e4m3fn", 4096, 65536, 1.30, 0.15},
                                 {"tensor-wise", "e4m3fn", 4096, 65536, 9, 0.1, "avx3"},
                                 {"tensor-wise", "e4m3fn", 4096, 65536, 9, 0.1, "cuda", "1"},
                                 {"tensor-wise", "e4m3fn", 4096, 8192, 9}});
  const std::vector<Claim> goals = Goals(layers);
  ASSERT_EQ(goals.size(), 4u);
  EXPECT_EQ(goals[0].verdict, "holds");  // fp8 SwitchBack
  EXPECT_THAT(goals[0].claim, HasSubstr("switchback e4m3fn is at least 1.30"));
  EXPECT_THAT(goals[0].measured,
              HasSubstr("1.300 times on a GPU (cuBLASLt), 0.0 % above the goal"));
  EXPECT_EQ(goals[1].verdict, "does not hold");  // int8 SwitchBack
  EXPECT_THAT(goals[1].measured, HasSubstr("0.9 % below the goal"));
  EXPECT_THAT(goals[1].measured, HasSubstr("would be 1.425 times"));
  EXPECT_EQ(goals[2].verdict, "not measured");   // all of it: other backend, width, tokens
  EXPECT_EQ(goals[3].verdict, "holds in part");  // shares
  EXPECT_THAT(goals[3].measured, HasSubstr("switchback int8: 16.0 %"));
}

TEST(LinearSpeedGoals, AreThoseOfADevice) {
  EXPECT_TRUE(Goals(LayersOf({{"switchback", "int8", 4096, 65536, 2, 0.1, "avx3"}})).empty());
  const std::vector<Claim> goals = Goals(LayersOf({{"switchback", "int8", 1024, 1024, 2}}));
  ASSERT_EQ(goals.size(), 4u);
  for (const Claim& goal : goals) EXPECT_EQ(goal.verdict, "not measured");
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
