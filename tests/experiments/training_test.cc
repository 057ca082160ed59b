// Tests the parts that experiments with trainings share.
#include "experiments/shared/training.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "experiments/runner/trial_context.h"
#include "experiments/shared/training_steps.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {
namespace {

Settings With(const std::map<std::string, std::string>& options) {
  return {.preset = "quick", .seed = 0, .seeds = 1, .options = options};
}

// A llama that trains for 12 steps, each of 2 sequences of 8 bytes.
TrainConfig TinyLlama() {
  TrainConfig config;
  config.model.kind = ModelKind::kLlama;
  config.model.layers = 1;
  config.model.width = 16;
  config.model.heads = 1;
  config.model.context = 8;
  config.data.kind = DataKind::kGeneratedText;
  config.data.size = 1 << 14;
  config.train.batch = 2;
  config.train.steps = 12;
  config.train.valid_batches = 2;
  config.train.valid_every = 0;
  config.schedule.warmup = 2;
  return config;
}

TEST(TrainingScaleText, NamesWhatTheExperimentDeclares) {
  EXPECT_EQ(
      TrainingScaleText(With({{"layers", "2"}, {"width", "64"}, {"steps", "300"}, {"lr", "1"}})),
      "2 layers, width 64, 300 steps");
  EXPECT_EQ(TrainingScaleText(With({{"sizes", "2x64,4x128"}, {"steps", "40"}})),
            "layers x width 2x64,4x128, 40 steps");
  EXPECT_EQ(TrainingScaleText(With({})), "");
}

TEST(ModelSizes, AreLayersByWidth) {
  EXPECT_EQ(ParseSize("sizes", "2x64"), (ModelSize{2, 64}));
  EXPECT_EQ(ParseSize("sizes", "1x16"), (ModelSize{1, 16}));
  EXPECT_EQ(ParseSize("sizes", "128x8192"), (ModelSize{128, 8192}));
  EXPECT_EQ(Text(ModelSize{12, 768}), "12x768");
  EXPECT_EQ(ReadSizes(With({{"of", "2x64,1x32"}}), "of"),
            (std::vector<ModelSize>{{2, 64}, {1, 32}}));
}

TEST(ModelSizes, ErrorsNameTheOptionAndTheText) {
  for (const std::string text : {"",
                                 "2",
                                 "x64",
                                 "2x",
                                 "0x64",
                                 "129x64",
                                 "2x15",
                                 "2x8193",
                                 "-2x64",
                                 "2x64x1",
                                 "2 x64",
                                 "2X64",
                                 "2x1e2",
                                 "1x18446744073709551648"}) {
    EXPECT_EQ(ErrorOf([&text] { ParseSize("sizes", text); }),
              "--sizes: '" + text + "' is not LAYERSxWIDTH from 1x16 to 128x8192");
  }
  EXPECT_EQ(ErrorOf([] {
              ReadSizes(With({{"of", "2x64,2"}}), "of");
            }),
            "--of: '2' is not LAYERSxWIDTH from 1x16 to 128x8192");
}

TEST(ModelSizes, HaveHeadsOf32OrOneHead) {
  for (const auto& [width, heads] :
       std::vector<std::pair<size_t, size_t>>{{16, 1}, {32, 1}, {48, 1}, {64, 2}, {768, 24}}) {
    ModelConfig model;
    SetSize({3, width}, model);
    EXPECT_EQ(model.layers, 3u);
    EXPECT_EQ(model.width, width);
    EXPECT_EQ(model.heads, heads) << width;
  }
}

TEST(LossCurve, HasTheMeanSinceThePointBefore) {
  const TrainConfig config = TinyLlama();
  Trainer trainer(config, OpenData(config.data));
  LossCurve curve(5);
  std::vector<double> losses;
  std::vector<std::pair<uint64_t, double>> trials;
  while (trainer.status() == TrainStatus::kRunning) {
    trainer.Step();
    losses.push_back(trainer.last_loss());
    if (curve.Add(trainer)) trials.emplace_back(curve.steps(), curve.loss());
  }
  ASSERT_EQ(losses.size(), 12u);
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0].first, 5u);
  EXPECT_EQ(trials[1].first, 10u);
  EXPECT_EQ(trials[2].first, 12u);
  const auto mean = [&losses](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += losses[i];
    return sum / static_cast<double>(end - begin);
  };
  EXPECT_DOUBLE_EQ(trials[0].second, mean(0, 5));
  EXPECT_DOUBLE_EQ(trials[1].second, mean(5, 10));
  EXPECT_DOUBLE_EQ(trials[2].second, mean(10, 12));
  EXPECT_NE(trials[0].second, trials[1].second);
}

TEST(LossCurve, EndsWithThePointBeforeADivergence) {
  const TrainConfig config = TinyLlama();
  Trainer trainer(config, OpenData(config.data));
  LossCurve curve(2);
  for (const bool point : {false, true}) {
    ASSERT_EQ(trainer.Step(), TrainStatus::kRunning);
    EXPECT_EQ(curve.Add(trainer), point);
  }
  trainer.model().parameters().Find("head.weight")->value.View().data[0] = std::nanf("");
  ASSERT_EQ(trainer.Step(), TrainStatus::kDiverged);
  EXPECT_FALSE(curve.Add(trainer));
}

TEST(FinalLoss, IsThatOfTheValidation) {
  const TrainConfig config = TinyLlama();
  Trainer trainer(config, OpenData(config.data));
  while (trainer.status() == TrainStatus::kRunning) trainer.Step();
  const double loss = FinalLoss(trainer);
  EXPECT_EQ(loss, trainer.Validate().Mean());
  EXPECT_GT(loss, 0);
  EXPECT_LT(loss, 6);  // log 256 and a bit
}

TEST(FinalLoss, IsInfiniteWhereTheTrainingDiverged) {
  TrainConfig config = TinyLlama();
  config.stress.point = "blocks.0.attention.norm";
  config.stress.value = 1e30;
  Trainer trainer(config, OpenData(config.data));
  while (trainer.status() == TrainStatus::kRunning) trainer.Step();
  ASSERT_EQ(trainer.status(), TrainStatus::kDiverged);
  EXPECT_EQ(FinalLoss(trainer), kInfinity);
}

// ---- the steps of a training in a trial

class StepsOfATrial : public ::testing::Test {
 protected:
  explicit StepsOfATrial(double save_every = 1e9) {
    context_.folder = directory_.Path();
    context_.save_every = save_every;
    context_.stop = [this] { return stop_; };
    context_.say = [](const std::string&) {};
    trial_.context = &context_;
  }
  bool IsSaved() const { return std::filesystem::exists(CheckpointOf(context_, "training")); }

  // A training that begins or continues in the trial.
  struct Loop {
    explicit Loop(const Trial& trial)
        : trainer(TinyLlama(), OpenData(TinyLlama().data)),
          steps(trial, trainer, [](StateArchive&) {}) {}
    Trainer trainer;
    TrainingSteps steps;
  };

  const TemporaryDirectory directory_;
  TrialContext context_;
  Trial trial_;
  bool stop_ = false;
};

TEST_F(StepsOfATrial, AreSavedAtAStopIfAnyWereTaken) {
  for (const uint64_t taken : {0, 1, 2}) {
    Loop loop(trial_);
    while (loop.trainer.steps_taken() < taken) {
      ASSERT_TRUE(loop.steps.Next());
      loop.trainer.Step();
    }
    stop_ = true;
    EXPECT_THROW(loop.steps.Next(), TrialStopped);
    stop_ = false;
    EXPECT_EQ(IsSaved(), taken > 0);
    EXPECT_EQ(Loop(trial_).trainer.steps_taken(), taken);
  }
}

class StepsSavedEveryHalfSecond : public StepsOfATrial {
 protected:
  StepsSavedEveryHalfSecond() : StepsOfATrial(0.5) {}
};

// The last of 12 steps is taken 80 ms after the start: a tenth of the time is enough there.
TEST_F(StepsSavedEveryHalfSecond, AreSavedAtTheEndAfterATenthOfTheTime) {
  Loop loop(trial_);
  while (loop.trainer.steps_taken() < 12) {
    ASSERT_TRUE(loop.steps.Next());
    loop.trainer.Step();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  EXPECT_FALSE(loop.steps.Next());
  EXPECT_TRUE(IsSaved());
}

TEST_F(StepsOfATrial, AreNotSavedAtTheEndOfAShortTraining) {
  Loop loop(trial_);
  while (loop.steps.Next()) loop.trainer.Step();
  EXPECT_FALSE(IsSaved());
}

}  // namespace
}  // namespace numsim::experiments
