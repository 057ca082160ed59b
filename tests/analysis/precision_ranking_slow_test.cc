// The ranking of guilty tensors on networks with one part made bad on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "numsim/analysis/precision_ranking.h"
#include "numsim/base/parallel.h"
#include "tests/analysis/ranking_check.h"
#include "tests/support/special_values.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PrecisionRanking, OneQuantisedLayerIsAllOfTheError) {
  for (const std::string format : {"e2m1fn", "e3m2fn"}) {
    TrainConfig config = TwoBlocks();
    config.linear.overrides = {{"blocks.1.mlp.down", Quantized("tensor-wise", format)}};
    Trainer trainer(config, OpenShared(config.data));
    const PrecisionRanking ranking = Rank(trainer, RankBy::kLayer);
    ASSERT_EQ(ranking.tensors.size(), 1u);
    const RankedTensor& only = ranking.tensors[0];
    EXPECT_EQ(only.layer, "blocks.1.mlp.down");
    EXPECT_EQ(only.tensor, "all");
    EXPECT_THAT(only.format, HasSubstr(format));
    EXPECT_EQ(only.error_without, 0);
    EXPECT_EQ(only.effect, 1);
    EXPECT_EQ(only.error_alone, ranking.error);
    EXPECT_GT(ranking.error, 1e-3);
    EXPECT_EQ(ranking.error_high, 0);
    EXPECT_EQ(ranking.step, 0u);
    for (const RankBy by : {RankBy::kTensor, RankBy::kOperand}) {
      for (const RankedTensor& row : Rank(trainer, by).tensors) {
        EXPECT_EQ(row.layer, "blocks.1.mlp.down") << row.tensor;
      }
    }
  }
}

TEST(PrecisionRanking, TheLayerOfACoarserFormatIsFirst) {
  for (const std::string bad : {"blocks.0.attention.out", "blocks.1.mlp.gate_up", "head"}) {
    TrainConfig config = TwoBlocks();
    config.linear.all = Quantized("switchback", "int8");
    config.linear.overrides = {{bad, Quantized("switchback", "e2m1fn")}};
    Trainer trainer(config, OpenShared(config.data));
    for (const RankBy by : kAllRankings) {
      const PrecisionRanking ranking = Rank(trainer, by);
      ExpectConsistent(ranking);
      const size_t rows = by == RankBy::kLayer ? 9 : by == RankBy::kTensor ? 27 : 36;
      EXPECT_EQ(ranking.tensors.size(), rows);
      EXPECT_EQ(First(ranking).first, bad) << ToString(by);
      if (by == RankBy::kLayer) {
        EXPECT_GT(ranking.tensors[0].effect, 0.85);
        EXPECT_LT(ranking.tensors[1].effect, 0.2);
      }
    }
  }
}

TEST(PrecisionRanking, TrainingMovesTheStepThatIsLookedAt) {
  TrainConfig config = TwoBlocks();
  config.linear.overrides = {{"blocks.1.mlp.down", Quantized("tensor-wise", "e2m1fn")}};
  Trainer trainer(config, OpenShared(config.data));
  const PrecisionRanking first = Rank(trainer, RankBy::kTensor);
  StepUntil(trainer, 5);
  const PrecisionRanking later = Rank(trainer, RankBy::kTensor);
  EXPECT_EQ(later.step, 5u);
  EXPECT_NE(later.error, first.error);
  trainer.Step();
  EXPECT_EQ(later.loss, trainer.last_loss());
}

struct Planted {
  std::string point;
  double value = 0;
  std::string layer;  // which reads it
  std::string high;   // operands of all layers in high precision
};

// The rank of the layer's X before and after, and whether it is first after.
void ExpectPlantedToBeGuilty(const Planted& planted) {
  SCOPED_TRACE(planted.point + " high: " + planted.high);
  TrainConfig config = TwoBlocks();
  config.linear.all = Quantized("tensor-wise", "int8");
  config.linear.all.gradient_format = "bf16";
  config.linear.all.high_operands = ParseOperandSet(planted.high);
  Trainer plain(config, OpenShared(config.data));
  const RowName x{planted.layer, "x"};
  const PrecisionRanking before = Rank(plain, RankBy::kTensor);
  config.stress.channel = 5;
  config.stress.point = planted.point;
  config.stress.value = planted.value;
  Trainer trainer(config, OpenShared(config.data));
  const PrecisionRanking ranking = Rank(trainer, RankBy::kTensor);
  EXPECT_EQ(First(ranking), x);
  EXPECT_GT(ranking.tensors[0].effect, 0.75);
  ASSERT_NE(Find(before, x), nullptr);
  EXPECT_LT(Find(before, x)->effect, 0.4);
  EXPECT_EQ(First(Rank(trainer, RankBy::kLayer)).first, planted.layer);
  EXPECT_EQ(First(Rank(trainer, RankBy::kOperand)), RowName(planted.layer, "forward.x"));
}

// The rows of X share one scale: a massive channel leaves the others few levels. (It multiplies the
// errors of its column of W as well, which is why W is in high precision here, except in the last.)
TEST(PrecisionRanking, APlantedOutlierMakesTheXThatReadsItGuilty) {
  ExpectPlantedToBeGuilty({"blocks.0.attention.norm", 40, "blocks.0.attention.qkv", "w"});
  ExpectPlantedToBeGuilty({"blocks.1.mlp.norm", 100, "blocks.1.mlp.gate_up", "w"});
  ExpectPlantedToBeGuilty({"blocks.1.attention.norm", 40, "blocks.1.attention.qkv", ""});
}

TEST(PrecisionRanking, AHugeWeightMakesItsWGuilty) {
  TrainConfig config = TwoBlocks();
  config.linear.all = Quantized("tensor-wise", "int8");
  config.linear.all.gradient_format = "bf16";
  for (const std::string layer :
       {"blocks.0.attention.qkv", "blocks.1.mlp.gate_up", "blocks.1.attention.out"}) {
    Trainer trainer(config, OpenShared(config.data));
    trainer.model().parameters().Find(layer + ".weight")->value.View().Row(3)[7] = 6;
    const PrecisionRanking ranking = Rank(trainer, RankBy::kTensor);
    EXPECT_EQ(First(ranking), RowName(layer, "w"));
    EXPECT_EQ(First(Rank(trainer, RankBy::kLayer)), RowName(layer, "all"));
  }
}

TEST(PrecisionRanking, WhatMakesAnInfinityIsGuiltyOfAllOfIt) {
  // 10^5 is beyond fp16; what is computed from it is not.
  TrainConfig config = TinyConfig();
  config.storage.activations = ParseFormat("fp16");
  config.stress.point = "blocks.0.attention.norm";
  config.stress.channel = 1;
  config.stress.value = 1e5;
  Trainer trainer(config, OpenShared(config.data));
  ExpectRankingByHand(trainer, RankBy::kTensor);
  const PrecisionRanking ranking = Rank(trainer, RankBy::kTensor);
  EXPECT_EQ(ranking.error, kInfinity);
  EXPECT_EQ(ranking.error_high, 0);
  EXPECT_TRUE(std::isfinite(ranking.float32_loss));
  EXPECT_EQ(First(ranking), RowName("blocks.0.attention.norm", "activation"));
  EXPECT_EQ(ranking.tensors[0].effect, 1);
  EXPECT_TRUE(std::isfinite(ranking.tensors[0].error_without));
  EXPECT_EQ(ranking.tensors[0].error_alone, kInfinity);
  for (size_t i = 1; i < ranking.tensors.size(); ++i) {
    EXPECT_EQ(ranking.tensors[i].effect, 0) << ranking.tensors[i].layer;
    EXPECT_EQ(ranking.tensors[i].error_without, kInfinity) << ranking.tensors[i].layer;
    EXPECT_TRUE(std::isfinite(ranking.tensors[i].error_alone)) << ranking.tensors[i].layer;
  }
}

TEST(PrecisionRanking, ALayerWhoseProductsOverflowIsGuilty) {
  TrainConfig config = TwoBlocks();
  config.linear.all = Quantized("switchback", "int8");
  config.linear.overrides = {{"blocks.0.mlp.down", Quantized("tensor-wise", "bf16")}};
  config.linear.overrides[0].precision.scale_rule = "absmax";  // to 3.4e38, in both operands
  Trainer trainer(config, OpenShared(config.data));
  const PrecisionRanking ranking = Rank(trainer, RankBy::kLayer);
  ExpectConsistent(ranking);
  EXPECT_EQ(ranking.error, kInfinity);
  EXPECT_EQ(First(ranking), RowName("blocks.0.mlp.down", "all"));
  EXPECT_EQ(ranking.tensors[0].effect, 1);
  EXPECT_LT(ranking.tensors[0].error_without, 0.1);
  EXPECT_EQ(ranking.tensors[1].effect, 0);
}

TEST(PrecisionRanking, NothingQuantisedIsAnEmptyRanking) {
  TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  for (const std::string high : {"fp32", "bf16"}) {
    config.linear.all.high_precision = high;
    for (const RankBy by : kAllRankings) {
      const PrecisionRanking ranking = Rank(trainer, by);
      EXPECT_TRUE(ranking.tensors.empty());
      EXPECT_TRUE(RankingTable(ranking).rows.empty());
      EXPECT_THAT(Describe(ranking), Not(HasSubstr("override]]")));
      RankingFigure(ranking);
    }
  }
}

TEST(PrecisionRanking, EveryKindOfModelHasOne) {
  struct Case {
    ModelKind model;
    DataKind data;
    std::string first;  // a layer that is made bad
  };
  for (const Case& one :
       {Case{ModelKind::kGpt, DataKind::kGeneratedText, "blocks.0.mlp.up"},
        Case{ModelKind::kVit, DataKind::kGeneratedImages, "blocks.0.mlp.up"},
        Case{ModelKind::kClip, DataKind::kGeneratedShapes, "text.blocks.0.attention.qkv"},
        Case{ModelKind::kMlp, DataKind::kGaussian, "blocks.0.mlp.down"}}) {
    TrainConfig config = TinyConfig();
    config.linear.all = Quantized("switchback", "int8");
    config.linear.overrides = {{one.first, Quantized("llm-int8", "e2m1fn")}};
    config.model.kind = one.model;
    config.model.initial_deviation = 0.2;  // gpt: not the head alone
    config.data.kind = one.data;
    config.data.image = 16;
    config.data.size = one.data == DataKind::kGeneratedText ? 1 << 14 : 256;
    Trainer trainer(config, OpenShared(config.data));
    const PrecisionRanking ranking = Rank(trainer, RankBy::kLayer);
    ExpectConsistent(ranking);
    EXPECT_EQ(ranking.tensors.size(), trainer.model().LinearLayers().size());
    EXPECT_EQ(First(ranking), RowName(one.first, "all")) << ToString(one.model);
    trainer.Step();
    EXPECT_EQ(ranking.loss, trainer.last_loss());
  }
}

void ExpectSame(const PrecisionRanking& x, const PrecisionRanking& y) {
  EXPECT_EQ(ToCsv(RankingTable(x)), ToCsv(RankingTable(y)));
  EXPECT_EQ(Describe(x), Describe(y));
  EXPECT_EQ(x.error, y.error);
  EXPECT_EQ(x.loss, y.loss);
  EXPECT_EQ(x.worst_error, y.worst_error);
}

TEST(PrecisionRanking, TrainerIsNotChanged) {
  for (const TrainConfig& config : {TinyConfig(), StatefulConfig()}) {
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    Trainer quiet(config, data), ranked(config, data);
    while (quiet.status() == TrainStatus::kRunning) {
      if (quiet.steps_taken() % 4 == 1) Rank(ranked, RankBy::kTensor);
      quiet.Step();
      ranked.Step();
    }
    EXPECT_EQ(TensorBytes(ranked.Save()), TensorBytes(quiet.Save()));
    EXPECT_EQ(ranked.Save().fields, quiet.Save().fields);
    EXPECT_EQ(TelemetryText(ranked.telemetry()), TelemetryText(quiet.telemetry()));
  }
}

TEST(PrecisionRanking, ThreadsDoNotChangeIt) {
  const TrainConfig config = StatefulConfig();
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  const int threads = ThreadCount();
  SetThreadCount(1);
  const PrecisionRanking one = Rank(trainer, RankBy::kLayer);
  for (const int count : {2, 3}) {
    SetThreadCount(count);
    ExpectSame(Rank(trainer, RankBy::kLayer), one);
  }
  SetThreadCount(threads);
}

TEST(PrecisionRanking, ProgressCountsToTheEnd) {
  TrainConfig config = TinyConfig();
  config.linear.all = Quantized("switchback", "int8");
  Trainer trainer(config, OpenShared(config.data));
  std::vector<std::pair<size_t, size_t>> calls;
  const PrecisionRanking ranking =
      RankPrecision(trainer, RankBy::kTensor, [&calls](size_t done, size_t count) {
        calls.emplace_back(done, count);
      });
  ASSERT_GE(calls.size(), ranking.tensors.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].first, i + 1);
    EXPECT_EQ(calls[i].second, calls.size());
  }
}

}  // namespace
}  // namespace numsim
