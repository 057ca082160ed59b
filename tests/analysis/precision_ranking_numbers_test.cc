// The ranking of guilty tensors: every number by steps done by hand.
#include <gtest/gtest.h>

#include <set>

#include "tests/analysis/ranking_check.h"
#include "tests/reference/analysis/hand_replay.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

TEST(PrecisionRankingNumbers, IsWhatStepsByHandGive) {
  TrainConfig config = TinyConfig();
  config.linear.all = Quantized("tensor-wise", "e4m3fn");
  config.linear.overrides = {{"*.qkv", Quantized("llm-int8", "int8")},
                             {"*.down", Quantized("standard", "")},
                             {"head", Quantized("switchback-q", "int8")}};
  config.linear.overrides[0].precision.high_operands = ParseOperandSet("x");
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 2);
  for (const RankBy by : kAllRankings) ExpectRankingByHand(trainer, by);
  // Nothing of the layer that is in high precision, nor of the operands that are.
  const PrecisionRanking ranking = Rank(trainer, RankBy::kTensor);
  EXPECT_EQ(Find(ranking, {"blocks.0.mlp.down", "x"}), nullptr);
  EXPECT_EQ(Find(ranking, {"blocks.0.attention.qkv", "x"}), nullptr);
  EXPECT_EQ(Find(ranking, {"blocks.0.attention.qkv", "w"})->format, "int8");
  EXPECT_EQ(Find(ranking, {"blocks.0.mlp.gate_up", "x"})->format, "e4m3fn");
  EXPECT_EQ(Find(ranking, {"blocks.0.mlp.gate_up", "g"})->format, "e5m2");
}

TEST(PrecisionRankingNumbers, HighPrecisionIsThatOfTheLayer) {
  TrainConfig config = TinyConfig();
  config.linear.all = Quantized("switchback", "int8");
  config.linear.all.high_precision = "bf16";
  Trainer trainer(config, OpenShared(config.data));
  for (const RankBy by : kAllRankings) ExpectRankingByHand(trainer, by);
  EXPECT_GT(Rank(trainer, RankBy::kLayer).error_high, 1e-4);
}

TEST(PrecisionRankingNumbers, KindsOfBlocksAreRankedToo) {
  for (const std::string kind : {"mx", "block", "row-wise-gw-hp"}) {
    SCOPED_TRACE(kind);
    TrainConfig config = TinyConfig();
    config.linear.all = Quantized(kind, "e4m3fn");
    Trainer trainer(config, OpenShared(config.data));
    ExpectRankingByHand(trainer, RankBy::kOperand);
  }
}

TEST(PrecisionRankingNumbers, KindsThatKeepCodesAreRankedByWholeTensors) {
  for (const std::string kind : {"switchback-m", "te-hybrid"}) {
    SCOPED_TRACE(kind);
    TrainConfig config = TinyConfig();
    config.linear.all = Quantized(kind, "e4m3fn");
    Trainer trainer(config, OpenShared(config.data));
    trainer.Step();
    ExpectRankingByHand(trainer, RankBy::kOperand);
    std::set<std::string> tensors;
    for (const RankedTensor& row : Rank(trainer, RankBy::kOperand).tensors) {
      tensors.insert(row.tensor);
    }
    EXPECT_EQ(tensors, (std::set<std::string>{"x", "w", "g"}));
  }
}

TEST(PrecisionRankingNumbers, DelayedScalesAndRandomDrawsAreThoseOfTheStep) {
  TrainConfig config = StatefulConfig();  // te-hybrid with a history, stochastic gradients
  config.storage = {};
  Trainer trainer(config, OpenShared(config.data));
  for (const uint64_t steps : {0, 3}) {
    StepUntil(trainer, steps);
    for (const RankBy by : kAllRankings) ExpectRankingByHand(trainer, by);
  }
}

TEST(PrecisionRankingNumbers, StoredTensorsAreRanked) {
  TrainConfig config = TinyConfig();
  config.storage.activations = ParseFormat("e4m3fn");
  Trainer trainer(config, OpenShared(config.data));
  for (const RankBy by : kAllRankings) ExpectRankingByHand(trainer, by);
  const PrecisionRanking ranking = Rank(trainer, RankBy::kTensor);
  EXPECT_EQ(ranking.error_high, 0);
  for (const RankedTensor& row : ranking.tensors) {
    EXPECT_EQ(row.tensor, "activation");
    EXPECT_EQ(row.format, "e4m3fn");
  }
  for (const char* const point : {"embedding", "blocks.0.mlp.hidden", "blocks.0", "head"}) {
    EXPECT_NE(Find(ranking, {point, "activation"}), nullptr) << point;
  }
}

TEST(PrecisionRankingNumbers, StoredTensorsAreRankedAmongTheOperands) {
  TrainConfig config = TinyConfig();
  config.linear.all = Quantized("tensor-wise", "int8");
  config.storage.activations = ParseFormat("bf16");
  config.storage.gradients = ParseFormat("e5m2");
  config.stress.point = "blocks.0";
  config.stress.channel = 2;
  config.stress.value = 3;
  Trainer trainer(config, OpenShared(config.data));
  for (const RankBy by : kAllRankings) ExpectRankingByHand(trainer, by);
  const PrecisionRanking ranking = Rank(trainer, RankBy::kTensor);
  EXPECT_EQ(Find(ranking, {"blocks.0", "gradient"})->format, "e5m2");
  EXPECT_EQ(Find(ranking, {"blocks.0", "activation"})->format, "bf16");
}

TEST(PrecisionRankingNumbers, CastsWithoutAScaleAreQuantisedToo) {
  // fp16 without a scale is a plain cast; so is high precision.
  TrainConfig config = TinyConfig();
  config.linear.overrides = {{"head", Quantized("tensor-wise", "fp16")}};
  config.linear.overrides[0].precision.scale_rule = "none";
  Trainer trainer(config, OpenShared(config.data));
  const PrecisionRanking ranking = Rank(trainer, RankBy::kTensor);
  EXPECT_EQ(ranking.tensors.size(), 3u);
  ExpectRankingByHand(trainer, RankBy::kTensor);
}

TEST(PrecisionRankingNumbers, FirstAndLastInHighPrecisionHaveNoRows) {
  TrainConfig config = TinyConfig();
  config.linear.all = Quantized("switchback", "int8");
  config.linear.first_last_high = true;
  Trainer trainer(config, OpenShared(config.data));
  const PrecisionRanking ranking = Rank(trainer, RankBy::kLayer);
  EXPECT_EQ(ranking.tensors.size(), 4u);
  EXPECT_EQ(Find(ranking, {"head", "all"}), nullptr);
  // The errors are those of the configuration, in which the head stays as it is.
  const HandStep reference = StepByHand(trainer, Float32ByHand());
  ExpectClose(ranking.error, ErrorByHand(StepByHand(trainer, PrecisionByHand(config)), reference));
  EXPECT_EQ(ranking.error_high, 0);
  for (const RankedTensor& row : ranking.tensors) {
    HandPrecision without = PrecisionByHand(config);
    LinearOptions options = config.linear.all;
    options.high_operands = OperandSet::All();
    without.linear.overrides = {{row.layer, options}};
    ExpectClose(row.error_without, ErrorByHand(StepByHand(trainer, without), reference));
  }
}

// A kind with operands in high precision, and which operands of a first layer are then quantised.
struct FirstLayer {
  std::string kind, high;
  std::set<std::string> tensors, operands;  // rows by tensor and by operand
};

const FirstLayer kFirstLayers[] = {
    {"switchback", "", {"x", "w"}, {"forward.x", "forward.w"}},
    {"switchback", "w", {"x"}, {"forward.x"}},
    {"switchback", "input-gradient.w", {"x", "w"}, {"forward.x", "forward.w"}},
    {"llm-int8",
     "",
     {"x", "w", "g"},
     {"forward.x", "forward.w", "weight-gradient.g", "weight-gradient.x"}},
    {"llm-int8", "w", {"x", "g"}, {"forward.x", "weight-gradient.g", "weight-gradient.x"}},
    {"llm-int8", "w,weight-gradient.g", {"x"}, {"forward.x", "weight-gradient.x"}},
    // G is cast once for both gradients, where there are both.
    {"tensor-wise", "w", {"x", "g"}, {"forward.x", "weight-gradient.g", "weight-gradient.x"}},
    {"switchback-m", "", {"x", "w"}, {"x", "w"}},
    {"switchback-m", "w", {"x"}, {"x"}},
    {"te-hybrid", "w", {"x", "g"}, {"x", "g"}},
};

// A layer whose input is pixels or features has no input gradient.
TEST(PrecisionRankingNumbers, OperandsThatNoProductTakesHaveNoRows) {
  struct Case {
    ModelKind model;
    DataKind data;
    std::string first, other;  // layers
  };
  TrainConfig config = TinyConfig();
  config.data.size = 128;
  config.data.image = 8;
  for (const Case& one :
       {Case{ModelKind::kVit, DataKind::kGeneratedImages, "patches", "blocks.0.mlp.up"},
        Case{ModelKind::kMlp, DataKind::kGaussian, "input", "blocks.0.mlp.up"}}) {
    config.model.kind = one.model;
    config.data.kind = one.data;
    for (const FirstLayer& layer : kFirstLayers) {
      SCOPED_TRACE(one.first + ' ' + layer.kind + " high: " + layer.high);
      LinearOptions options = Quantized(layer.kind, "int8");
      options.high_operands = ParseOperandSet(layer.high);
      config.linear.overrides = {{one.first, options}, {one.other, options}};
      Trainer trainer(config, OpenShared(config.data));
      trainer.Step();  // a head of zeros has no gradients before it
      for (const RankBy by : {RankBy::kTensor, RankBy::kOperand}) {
        const PrecisionRanking ranking = Rank(trainer, by);
        std::set<std::string> found;
        for (const RankedTensor& row : ranking.tensors) {
          if (row.layer != one.first) continue;
          found.insert(row.tensor);
          EXPECT_GT(row.error_alone, 0) << row.tensor;
        }
        EXPECT_EQ(found, by == RankBy::kTensor ? layer.tensors : layer.operands);
        if (by == RankBy::kTensor) {
          EXPECT_NE(Find(ranking, {one.other, "g"}), nullptr);
        }
      }
    }
  }
}

TEST(PrecisionRankingNumbers, AfterTheEndItIsTheStepThatWouldCome) {
  TrainConfig config = TinyConfig();
  config.linear.all = Quantized("switchback", "int8");
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  ASSERT_EQ(trainer.status(), TrainStatus::kFinished);
  EXPECT_EQ(Rank(trainer, RankBy::kLayer).step, config.train.steps);
  ExpectRankingByHand(trainer, RankBy::kLayer);
}

TEST(PrecisionRankingNumbers, WithoutAGradientInFloat32ThereIsNothingToRankBy) {
  TrainConfig config = TinyConfig();
  config.linear.all = Quantized("switchback", "int8");
  config.stress.point = "blocks.0.attention.norm";
  config.stress.value = 1e30;
  Trainer trainer(config, OpenShared(config.data));
  EXPECT_THROW(Rank(trainer, RankBy::kLayer), Error);
}

}  // namespace
}  // namespace numsim
