// A ranking as a table, a figure, text and advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>

#include "tests/analysis/ranking_check.h"
#include "tests/reference/analysis/hand_replay.h"
#include "tests/support/error_of.h"
#include "tests/support/io_fixture.h"
#include "tests/support/special_values.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RankBy, NamesReadBack) {
  for (const RankBy by : kAllRankings) EXPECT_EQ(ParseRankBy(ToString(by)), by);
  EXPECT_EQ(ParseRankBy("operand"), RankBy::kOperand);
  EXPECT_EQ(ToString(RankBy::kLayer), "layer");
  EXPECT_THAT(
      ErrorOf([] { ParseRankBy("tensors"); }),
      AllOf(
          HasSubstr("'tensors'"), HasSubstr("layer"), HasSubstr("tensor, "), HasSubstr("operand")));
}

// A ranking to show, with what is awkward to show.
PrecisionRanking Example() {
  PrecisionRanking ranking;
  ranking.step = 42;
  ranking.loss = 2.5;
  ranking.float32_loss = 2.25;
  ranking.error = 0.5;
  ranking.error_high = 0.0625;
  ranking.worst_parameter = "blocks.7.mlp.up.weight";
  ranking.worst_error = 0.75;
  for (int i = 0; i < 30; ++i) {
    RankedTensor row;
    row.layer = "blocks." + std::to_string(i) + ".attention_out";
    row.tensor = i % 2 == 0 ? "x" : "g";
    row.format = i % 2 == 0 ? "e4m3fn" : "e5m2";
    row.error_without = 0.01 * (i + 1);
    row.effect = 1 - row.error_without * row.error_without / 0.25;
    row.error_alone = 0.125 / (i + 1);
    ranking.tensors.push_back(row);
  }
  return ranking;
}

TEST(RankingTable, HasARowATensorInOrder) {
  const PrecisionRanking ranking = Example();
  const Table table = RankingTable(ranking);
  EXPECT_EQ(table.columns,
            (std::vector<std::string>{
                "rank", "layer", "tensor", "format", "effect", "error_without", "error_alone"}));
  ASSERT_EQ(table.rows.size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    const RankedTensor& row = ranking.tensors[i];
    EXPECT_EQ(table.Number(i, "rank"), static_cast<double>(i + 1));
    EXPECT_EQ(table.Text(i, "layer"), row.layer);
    EXPECT_EQ(table.Text(i, "tensor"), row.tensor);
    EXPECT_EQ(table.Text(i, "format"), row.format);
    EXPECT_EQ(table.Number(i, "effect"), row.effect);
    EXPECT_EQ(table.Number(i, "error_without"), row.error_without);
    EXPECT_EQ(table.Number(i, "error_alone"), row.error_alone);
  }
}

TEST(RankingTable, InfiniteErrorsAreWritten) {
  PrecisionRanking ranking = Example();
  ranking.tensors[0].error_alone = kInfinity;
  EXPECT_EQ(RankingTable(ranking).Text(0, "error_alone"), "inf");
}

// All bars of a panel, in the order of its rows from above.
std::vector<double> Bars(const Panel& panel) {
  std::vector<double> bars(panel.rows.size());
  for (const Series& series : panel.series) {
    EXPECT_EQ(series.x.size(), series.y.size());
    for (size_t i = 0; i < series.x.size(); ++i) {
      bars.at(static_cast<size_t>(series.y[i])) = series.x[i];
    }
  }
  return bars;
}

TEST(RankingFigure, HasBarsOfTheFirstWithTheirNames) {
  const PrecisionRanking ranking = Example();
  for (const size_t count : {1, 5, 20, 30, 100}) {
    const Figure figure = RankingFigure(ranking, count);
    const size_t bars = std::min<size_t>(count, 30);
    EXPECT_FALSE(figure.name.empty());
    EXPECT_THAT(figure.title, HasSubstr("42"));
    ASSERT_EQ(figure.panels.size(), 2u);
    for (const Panel& panel : figure.panels) {
      EXPECT_FALSE(panel.x.label.empty());
      EXPECT_EQ(panel.rows.size(), bars);
    }
    const std::vector<double> effects = Bars(figure.panels[0]), alone = Bars(figure.panels[1]);
    ASSERT_EQ(effects.size(), bars);
    ASSERT_EQ(alone.size(), bars);
    for (size_t i = 0; i < bars; ++i) {
      const RankedTensor& row = ranking.tensors[i];
      EXPECT_EQ(effects[i], row.effect) << i;
      EXPECT_EQ(alone[i], row.error_alone) << i;
      EXPECT_EQ(figure.panels[0].rows[i], row.layer + " " + row.tensor);
    }
  }
  EXPECT_EQ(RankingFigure(ranking).panels[0].rows.size(), 20u);
}

using RankingFiles = IoTest;

TEST_F(RankingFiles, FigureIsDrawnWhateverTheNumbers) {
  PrecisionRanking ranking = Example();
  ranking.tensors[0].error_alone = kInfinity;
  ranking.tensors[1].effect = -3;
  ranking.tensors[2].effect = -kInfinity;
  ranking.tensors[2].error_without = kInfinity;
  EXPECT_FALSE(DrawFigure(RankingFigure(ranking), Directory()).empty());
  for (RankedTensor& row : ranking.tensors) row.error_alone = kInfinity;
  EXPECT_FALSE(DrawFigure(RankingFigure(ranking), Directory()).empty());
  for (RankedTensor& row : ranking.tensors) row.effect = row.error_alone = 0;
  EXPECT_FALSE(DrawFigure(RankingFigure(ranking), Directory()).empty());
}

size_t LinesWith(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) ++count;
  }
  return count;
}

TEST(DescribeRanking, NamesWhatWasLookedAtAndTheFirst) {
  const PrecisionRanking ranking = Example();
  const std::string text = Describe(ranking, 3);
  for (const char* const part : {"42", "2.5", "2.25", "0.0625", "blocks.7.mlp.up.weight", "0.75"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  for (int i = 0; i < 30; ++i) {
    const std::string layer = "blocks." + std::to_string(i) + ".attention_out";
    EXPECT_EQ(LinesWith(text, layer) > 0, i < 3) << layer << '\n' << text;
  }
  EXPECT_LT(text.find("blocks.0.attention_out"), text.find("blocks.1.attention_out"));
  EXPECT_EQ(LinesWith(Describe(ranking), ".attention_out"), 10u);
  EXPECT_TRUE(text.ends_with('\n'));
}

// The [[linear.override]] that a description advises, as TOML.
std::string Advice(const std::string& text) {
  std::istringstream lines(text);
  std::string advice;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos) {
      if (!advice.empty()) break;
    } else if (!advice.empty() || line.compare(at, 19, "[[linear.override]]") == 0) {
      advice += line + '\n';
    }
  }
  return advice;
}

// The advised override is the layer's own options except for its operands in high precision.
void ExpectOtherOptionsToBeKept(const TrainConfig& config,
                                const TrainConfig& advised,
                                const std::string& guilty) {
  LinearOptions storage;
  TrainConfig expected = config;
  expected.linear.overrides.push_back({guilty, PrecisionOf(config.linear, guilty, false, storage)});
  expected.linear.overrides.back().precision.high_operands =
      advised.linear.overrides.back().precision.high_operands;
  EXPECT_EQ(WriteTrainConfig(advised), WriteTrainConfig(expected));
}

// The error after the advice is taken.
void ExpectAdviceToHelp(Trainer& trainer, RankBy by, const std::string& guilty) {
  SCOPED_TRACE(ToString(by));
  const PrecisionRanking ranking = Rank(trainer, by);
  EXPECT_EQ(First(ranking).first, guilty);
  const std::string text = Describe(ranking), advice = Advice(text);
  ASSERT_NE(advice, "") << text;
  const TrainConfig advised =
      ParseTrainConfig(WriteTrainConfig(trainer.config()) + '\n' + advice, "advice", ".", {});
  EXPECT_EQ(advised.linear.overrides.size(), trainer.config().linear.overrides.size() + 1);
  EXPECT_EQ(advised.linear.overrides.back().layers, guilty);
  ExpectOtherOptionsToBeKept(trainer.config(), advised, guilty);
  const HandStep reference = StepByHand(trainer, Float32ByHand());
  const double error = ErrorByHand(StepByHand(trainer, PrecisionByHand(advised)), reference);
  ExpectClose(error, ranking.tensors[0].error_without);
  EXPECT_LT(error, 0.9 * ranking.error) << advice;
  // And it is not guilty any more.
  Trainer better(advised, OpenShared(advised.data));
  EXPECT_EQ(Find(Rank(better, by), First(ranking)), nullptr);
}

TEST(DescribeRanking, AdviceLeavesTheFirstInHighPrecision) {
  TrainConfig config = TwoBlocks();
  config.linear.all = Quantized("switchback", "int8");
  config.linear.overrides = {{"blocks.1.mlp.*", Quantized("llm-int8", "int8")},
                             {"*.1.mlp.down", Quantized("llm-int8", "e2m1fn")}};
  Trainer trainer(config, OpenShared(config.data));
  for (const RankBy by : kAllRankings) ExpectAdviceToHelp(trainer, by, "blocks.1.mlp.down");
}

TEST(DescribeRanking, AdviceKeepsTheOtherOptionsOfTheLayer) {
  LinearOptions bad = Quantized("block", "e3m2fn");
  bad.gradient_format = "e2m3fn";
  bad.high_precision = "bf16";
  bad.gradient_rounding = {.mode = RoundingMode::kStochastic, .random_bits = 7};
  bad.accumulate = "exact";
  bad.scale_rule = "absmax";
  bad.block = 8;
  bad.high_operands = ParseOperandSet("weight-gradient.g");
  TrainConfig config = TwoBlocks();
  config.linear.all = Quantized("switchback", "int8");
  config.linear.overrides = {{"blocks.0.attention.out", bad}};
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 2);
  for (const RankBy by : kAllRankings) ExpectAdviceToHelp(trainer, by, "blocks.0.attention.out");
}

TEST(DescribeRanking, AdviceForDelayedScaling) {
  TrainConfig config = TwoBlocks();
  config.linear.all = Quantized("te-hybrid", "e4m3fn");
  config.linear.all.delayed = DelayedScalingOptions{3, AmaxAlgorithm::kMostRecent, 1};
  LinearOptions bad = config.linear.all;
  bad.format = bad.gradient_format = "e2m1fn";
  config.linear.overrides = {{"blocks.0.mlp.gate_up", bad}};
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 2);
  for (const RankBy by : kAllRankings) ExpectAdviceToHelp(trainer, by, "blocks.0.mlp.gate_up");
}

TEST(DescribeRanking, FirstThatIsAStoredTensorHasNoOverride) {
  TrainConfig config = TinyConfig();
  config.storage.activations = ParseFormat("e3m2fn");
  Trainer trainer(config, OpenShared(config.data));
  const std::string text = Describe(Rank(trainer, RankBy::kTensor));
  EXPECT_EQ(Advice(text), "") << text;
  EXPECT_THAT(text, HasSubstr("storage.activations"));
}

TEST(DescribeRanking, NoAdviceWhereNoneHelps) {
  PrecisionRanking ranking = Example();
  ranking.error = kInfinity;
  for (RankedTensor& row : ranking.tensors) {
    row.error_without = kInfinity;
    row.effect = 0;
    row.linear_override = "[[linear.override]]\nlayers = \"head\"\n";
  }
  EXPECT_EQ(Advice(Describe(ranking)), "");
}

}  // namespace
}  // namespace numsim
