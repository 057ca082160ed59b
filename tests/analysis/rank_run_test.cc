// Rankings in the directory of a training, and what they say is to be done.
#include <cmath>

#include "numsim/analysis/precision_ranking.h"
#include "numsim/analysis/step_replay.h"
#include "numsim/plot/figure.h"
#include "numsim/train/run.h"
#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

// int8 layers of which one is in a format of two bits of significand and little range.
TrainConfig OneBadLayer() {
  TrainConfig config = TinyConfig();
  config.linear.all.kind = "switchback";
  config.linear.first_last_high = true;
  LinearOptions bad = config.linear.all;
  bad.kind = "tensor-wise";
  bad.format = "e2m1fn";
  config.linear.overrides.push_back({"blocks.0.attention.out", bad});
  return config;
}

class RankRun : public IoTest {
 protected:
  RankRunResult Rank(const TrainConfig& config, RankBy by, std::string_view folder) {
    RankRunOptions options;
    options.out = Path(folder);
    options.by = by;
    return RunRanking(config, options);
  }

  void Train(const TrainConfig& config, std::string_view folder) {
    TrainRunOptions options;
    options.out = Path(folder);
    options.figures = false;
    RunTraining(config, options);
  }

  // Name -> content of all files but those of a ranking.
  std::map<std::string, std::string> OtherFiles(std::string_view folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(Path(folder))) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("ranking.")) files[name] = Bytes(entry.path());
    }
    return files;
  }
};

TEST_F(RankRun, FindsTheLayerThatWasMadeBadAndSaysHowToSpareIt) {
  for (const RankBy by : {RankBy::kLayer, RankBy::kTensor, RankBy::kOperand}) {
    const TrainConfig config = OneBadLayer();
    const PrecisionRanking ranking = Rank(config, by, "out").ranking;
    ASSERT_FALSE(ranking.tensors.empty());
    const RankedTensor& first = ranking.tensors[0];
    EXPECT_EQ(first.layer, "blocks.0.attention.out");
    EXPECT_EQ(ranking.step, 0u);
    EXPECT_GT(first.effect, 0.1);
    // The configuration with that override behind it has the error that was promised.
    const TrainConfig spared =
        ParseTrainConfig(WriteTrainConfig(config) + "\n" + first.linear_override, "spared", {}, {});
    Trainer trainer(spared, OpenShared(spared.data));
    EXPECT_EQ(RankPrecision(trainer, RankBy::kLayer, {}).error, first.error_without);
  }
}

TEST_F(RankRun, WritesItsFilesBesideThoseOfTheTraining) {
  const TrainConfig config = OneBadLayer();
  Train(config, "out");
  const auto before = OtherFiles("out");
  const RankRunResult result = Rank(config, RankBy::kTensor, "out");
  EXPECT_TRUE(result.from_checkpoint);
  EXPECT_EQ(result.ranking.step, config.train.steps);
  EXPECT_EQ(OtherFiles("out"), before);
  EXPECT_EQ(Bytes(Path("out") / "ranking.csv"), ToCsv(RankingTable(result.ranking)));
  EXPECT_EQ(Bytes(Path("out") / "ranking.txt"), result.text);
  EXPECT_EQ(result.text, Describe(result.ranking));
  for (const std::string& file : result.files) {
    EXPECT_TRUE(std::filesystem::exists(Path("out") / file)) << file;
  }
  EXPECT_EQ(result.files.size(), GnuplotVersion().empty() ? 3u : 5u);
  // The same again, and another in its place.
  EXPECT_EQ(Rank(config, RankBy::kTensor, "out").text, result.text);
  const std::string by_layer = Rank(config, RankBy::kLayer, "out").text;
  EXPECT_NE(by_layer, result.text);
  EXPECT_EQ(Bytes(Path("out") / "ranking.txt"), by_layer);
  EXPECT_EQ(OtherFiles("out"), before);
}

TEST_F(RankRun, ADirectoryOfARankingAloneIsFreeForATraining) {
  const TrainConfig config = OneBadLayer();
  EXPECT_FALSE(Rank(config, RankBy::kLayer, "out").from_checkpoint);
  EXPECT_NO_THROW(Train(config, "out"));
}

TEST_F(RankRun, RefusesTheRunOfAnotherConfiguration) {
  TrainConfig config = OneBadLayer();
  Train(config, "out");
  const auto before = OtherFiles("out");
  config.linear.all.format = "e4m3fn";
  ExpectMessage(ErrorOf([&] { Rank(config, RankBy::kLayer, "out"); }),
                {"checkpoint.safetensors", "linear.format"});
  EXPECT_EQ(OtherFiles("out"), before);
  EXPECT_FALSE(std::filesystem::exists(Path("out") / "ranking.txt"));
}

TEST_F(RankRun, WithoutAFiniteGradientThereIsNothingToRankBy) {
  TrainConfig config = OneBadLayer();
  config.stress.point = "blocks.0.mlp.norm";
  config.stress.value = 1e30;
  ExpectMessage(ErrorOf([&] { Rank(config, RankBy::kLayer, "out"); }), {"step 0", "not finite"});
}

// ||g - r|| / ||r|| of a step in that precision, r in float32.
double ReplayError(const StepReplay& replay, const ReplayPrecision& precision) {
  const StepGradients<float> r = replay.Run<float>(Float32Precision());
  const StepGradients<float> g = replay.Run<float>(precision);
  double error = 0, signal = 0;
  for (size_t i = 0; i < r.gradients.size(); ++i) {
    for (size_t j = 0; j < r.gradients[i].values.size(); ++j) {
      const double reference = static_cast<double>(r.gradients[i].values[j]);
      const double difference = static_cast<double>(g.gradients[i].values[j]) - reference;
      error += difference * difference;
      signal += reference * reference;
    }
  }
  return std::sqrt(error / signal);
}

TEST(RankedTensors, AreTriedInTheConfigurationsThatTheyStandFor) {
  TrainConfig config = TinyConfig();  // one layer is quantised, G is left out, bf16 for the rest
  LinearOptions options;
  options.kind = "tensor-wise";
  options.format = "e4m3fn";
  options.gradient_format = "e4m3fn";
  options.high_operands = ParseOperandSet("g");
  config.linear.overrides.push_back({"blocks.0.mlp.down", options});
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 2);
  const StepReplay replay(trainer);
  const auto error = [&](const char* high_operands) {
    ReplayPrecision precision = PrecisionOf(config);
    precision.linear.overrides[0].precision.high_operands = ParseOperandSet(high_operands);
    return ReplayError(replay, precision);
  };
  const auto expect = [&](RankBy by, const char* name, const char* without, const char* alone) {
    const PrecisionRanking ranking = RankPrecision(trainer, by, {});
    EXPECT_NEAR(ranking.error, error("g"), 1e-12);
    EXPECT_NEAR(ranking.error_high, error("x,w,g"), 1e-12);
    for (const RankedTensor& tensor : ranking.tensors) {
      EXPECT_EQ(tensor.layer, "blocks.0.mlp.down");
      if (tensor.tensor != name) continue;
      EXPECT_NEAR(tensor.error_without, error(without), 1e-12) << name;
      EXPECT_NEAR(tensor.error_alone, error(alone), 1e-12) << name;
      const double ratio = error(without) / error("g");
      EXPECT_NEAR(tensor.effect, 1 - ratio * ratio, 1e-9) << name;
      return ranking.tensors.size();
    }
    ADD_FAILURE() << name;
    return size_t{0};
  };
  EXPECT_EQ(expect(RankBy::kLayer, "all", "x,w,g", "g"), 1u);
  EXPECT_EQ(expect(RankBy::kTensor, "x", "x,g", "w,g"), 2u);
  EXPECT_EQ(expect(RankBy::kTensor, "w", "w,g", "x,g"), 2u);
  EXPECT_EQ(expect(RankBy::kOperand, "weight-gradient.x", "weight-gradient.x,g", "forward.x,w,g"),
            4u);
}

TEST(RankedTensors, OfStorageAreSparedOrRoundedAlone) {
  TrainConfig config = TinyConfig();
  config.storage.gradients = ParseFormat("e5m2");
  config.linear.all.kind = "switchback";
  Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  const PrecisionRanking ranking = RankPrecision(trainer, RankBy::kLayer, {});
  size_t stored = 0;
  for (const RankedTensor& tensor : ranking.tensors) {
    if (tensor.tensor == "all") continue;
    ++stored;
    EXPECT_EQ(tensor.tensor, "gradient");
    EXPECT_EQ(tensor.format, "e5m2");
    EXPECT_EQ(tensor.linear_override, "");
    ReplayPrecision without = PrecisionOf(config), alone = PrecisionOf(config);
    without.unrounded = alone.only_rounded = {tensor.layer, TensorRole::kGradient};
    alone.linear = Float32Precision().linear;
    EXPECT_NEAR(tensor.error_without, ReplayError(replay, without), 1e-12) << tensor.layer;
    EXPECT_NEAR(tensor.error_alone, ReplayError(replay, alone), 1e-12) << tensor.layer;
  }
  EXPECT_EQ(stored, 13u);
}

TEST(RankedTensors, OverACompleteListOfTensorsAndStorage) {
  TrainConfig config = StatefulConfig();  // te-hybrid, delayed; bf16 storage
  config.linear.first_last_high = true;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 2);
  const TrainState state = trainer.Save();
  size_t calls = 0, total = 0;
  const PrecisionRanking ranking =
      RankPrecision(trainer, RankBy::kOperand, [&](size_t done, size_t all) {
        EXPECT_EQ(done, ++calls);
        total = all;
      });
  EXPECT_EQ(TensorBytes(trainer.Save()), TensorBytes(state));
  EXPECT_EQ(calls, 2 * ranking.tensors.size());
  EXPECT_EQ(total, calls);
  std::map<std::string, size_t> counts;
  for (const RankedTensor& tensor : ranking.tensors) {
    ++counts[tensor.tensor];
    EXPECT_NE(tensor.layer == "head" && tensor.tensor.size() == 1, true) << tensor.tensor;
  }
  // Four linear layers but the head, with x, w, g for they keep codes; 13 points, each both ways.
  EXPECT_EQ(counts,
            (std::map<std::string, size_t>{
                {"x", 4}, {"w", 4}, {"g", 4}, {"activation", 13}, {"gradient", 13}}));
  EXPECT_GT(ranking.error, ranking.error_high);
}

TEST(RankedTensors, OperandsThatAreNotUsedAreNoRows) {
  TrainConfig config = TinyConfig();
  config.linear.all.kind = "llm-int8";
  config.model.kind = ModelKind::kMlp;
  config.data = {};
  config.data.kind = DataKind::kGaussian;
  config.data.size = 512;
  config.data.features = 8;
  Trainer trainer(config, OpenShared(config.data));
  const PrecisionRanking ranking = RankPrecision(trainer, RankBy::kOperand, {});
  std::map<std::string, size_t> counts;
  for (const RankedTensor& tensor : ranking.tensors) ++counts[tensor.layer];
  EXPECT_EQ(counts["input"], 4u);  // no dX
  EXPECT_EQ(counts["head"], 6u);
}

}  // namespace
}  // namespace numsim
