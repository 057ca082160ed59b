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

TrainConfig TinyClip() {
  TrainConfig config = TinyLlama();
  config.model.kind = ModelKind::kClip;
  config.model.patch = 8;
  config.data.kind = DataKind::kGeneratedShapes;
  config.data.size = 128;
  config.data.image = 16;
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

TEST(ReadTraining, TakesEveryOption) {
  TrainConfig config;
  config.train.valid_every = 7;
  ReadTraining(With({{"layers", "3"},
                     {"width", "48"},
                     {"heads", "6"},
                     {"context", "20"},
                     {"batch", "5"},
                     {"steps", "70"},
                     {"valid-batches", "9"},
                     {"lr", "0.25"},
                     {"warmup", "11"},
                     {"epsilon", "0.125"},
                     {"beta1", "0.5"},
                     {"beta2", "0.75"},
                     {"weight-decay", "0.375"},
                     {"clip", "2.5"}}),
               42,
               config);
  EXPECT_EQ(config.model.layers, 3u);
  EXPECT_EQ(config.model.width, 48u);
  EXPECT_EQ(config.model.heads, 6u);
  EXPECT_EQ(config.model.context, 20u);
  EXPECT_EQ(config.train.batch, 5u);
  EXPECT_EQ(config.train.steps, 70u);
  EXPECT_EQ(config.train.valid_batches, 9u);
  EXPECT_EQ(config.train.valid_every, 0u);
  EXPECT_EQ(config.train.seed, 42u);
  EXPECT_EQ(config.schedule.peak, 0.25);
  EXPECT_EQ(config.schedule.warmup, 11u);
  EXPECT_EQ(config.schedule.steps, 70u);
  EXPECT_EQ(config.optimizer.epsilon, 0.125);
  EXPECT_EQ(config.optimizer.beta1, 0.5);
  EXPECT_EQ(config.optimizer.beta2, 0.75);
  EXPECT_EQ(config.optimizer.weight_decay, 0.375);
  EXPECT_EQ(config.optimizer.clip_norm, 2.5);
}

TEST(ReadTraining, SetsFurtherKeysLast) {
  TrainConfig config;
  ReadTraining(
      With({{"steps", "7"}, {"keys", "schedule.final=0.5;train.valid_every=3"}}), 3, config);
  EXPECT_EQ(config.schedule.final, 0.5);
  EXPECT_EQ(config.train.valid_every, 3u);
  EXPECT_EQ(config.train.steps, 7u);
  const std::string message = ErrorOf([&] {
    ReadTraining(With({{"keys", "schedule.finale=0.5"}}), 3, config);
  });
  EXPECT_NE(message.find("did you mean schedule.final?"), std::string::npos) << message;
}

TEST(ReadTraining, LeavesWhatIsNotDeclared) {
  TrainConfig config = TinyLlama();
  config.schedule.peak = 0.5;
  config.optimizer.beta1 = 0.625;
  ReadTraining(With({{"width", "32"}}), 3, config);
  EXPECT_EQ(config.model.width, 32u);
  EXPECT_EQ(config.model.layers, 1u);
  EXPECT_EQ(config.model.context, 8u);
  EXPECT_EQ(config.train.steps, 12u);
  EXPECT_EQ(config.schedule.steps, 12u);
  EXPECT_EQ(config.schedule.warmup, 2u);
  EXPECT_EQ(config.schedule.peak, 0.5);
  EXPECT_EQ(config.optimizer.beta1, 0.625);
  EXPECT_EQ(config.train.seed, 3u);
}

TEST(ReadTraining, ErrorsNameTheOption) {
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"layers", "0"},
                                                        {"layers", "129"},
                                                        {"width", "x"},
                                                        {"heads", "0"},
                                                        {"context", "1.5"},
                                                        {"batch", "0"},
                                                        {"steps", "100000001"},
                                                        {"valid-batches", "0"},
                                                        {"lr", "0"},
                                                        {"lr", "nan"},
                                                        {"warmup", "-1"},
                                                        {"epsilon", "0"},
                                                        {"beta1", "1"},
                                                        {"beta2", "-0.1"},
                                                        {"weight-decay", "101"},
                                                        {"clip", "-1"}}) {
    const Settings settings = With({{option, value}});
    const std::string message = ErrorOf([&settings] {
      TrainConfig config;
      ReadTraining(settings, 0, config);
    });
    EXPECT_TRUE(message.starts_with("--" + option + " \"" + value + "\": expected")) << message;
  }
}

TEST(ReadData, IsAFileOrGenerated) {
  DataConfig data;
  ReadTextData(With({{"text", ""}, {"text-size", "20000"}}), data);
  EXPECT_EQ(data.kind, DataKind::kGeneratedText);
  EXPECT_EQ(data.path, "");
  EXPECT_EQ(data.size, 20000u);
  ReadTextData(With({{"text", "some.txt"}, {"text-size", "20000"}}), data);
  EXPECT_EQ(data.kind, DataKind::kText);
  EXPECT_EQ(data.path, "some.txt");
  ReadCaptions(With({{"captions", ""}, {"shapes", "99"}, {"image", "24"}}), data);
  EXPECT_EQ(data.kind, DataKind::kGeneratedShapes);
  EXPECT_EQ(data.path, "");
  EXPECT_EQ(data.size, 99u);
  EXPECT_EQ(data.image, 24u);
  ReadCaptions(With({{"captions", "folder"}}), data);
  EXPECT_EQ(data.kind, DataKind::kCaptions);
  EXPECT_EQ(data.path, "folder");
}

TEST(ReadData, ErrorsNameTheOption) {
  const auto message_of = [](const std::map<std::string, std::string>& options) {
    return ErrorOf([&options] {
      DataConfig data;
      options.contains("text") ? ReadTextData(With(options), data)
                               : ReadCaptions(With(options), data);
    });
  };
  EXPECT_TRUE(
      message_of({{"text", ""}, {"text-size", "16383"}}).starts_with("--text-size \"16383"));
  EXPECT_TRUE(message_of({{"captions", ""}, {"shapes", "63"}, {"image", "16"}})
                  .starts_with("--shapes \"63\""));
  EXPECT_TRUE(message_of({{"captions", ""}, {"shapes", "64"}, {"image", "65"}})
                  .starts_with("--image \"65\""));
}

std::string CheckMessage(const std::map<std::string, std::string>& options,
                         const TrainConfig& config) {
  return ErrorOf([&] { CheckTraining(With(options), config); });
}

TEST(CheckTraining, AcceptsWhatTrains) {
  EXPECT_EQ(CheckMessage({}, TinyLlama()), "no error");
  EXPECT_EQ(CheckMessage({}, TinyClip()), "no error");
}

TEST(CheckTraining, RefusesKeysThatTheExperimentSets) {
  TrainConfig config = TinyLlama();
  EXPECT_EQ(CheckMessage({{"keys", ""}}, config), "no error");
  config.schedule.final = 0.25;
  EXPECT_EQ(CheckMessage({{"keys", "schedule.final=0.25"}}, config), "no error");
  EXPECT_EQ(CheckMessage({{"keys", "schedule.final=0.5"}}, config),
            "--set schedule.final=0.5: the experiment sets this key itself");
}

TEST(CheckTraining, KeysAreNamedByTheirOptions) {
  struct Case {
    std::function<void(TrainConfig&)> spoil;
    std::string key, option;
  };
  const std::vector<Case> cases = {
      {[](TrainConfig& c) { c.model.context = 1 << 14; }, "model.context:", "context"},
      {[](TrainConfig& c) { c.train.batch = 1 << 12; }, "train.batch:", "batch"},
      {[](TrainConfig& c) { c.model.layers = 0; }, "model.layers:", "layers"},
      {[](TrainConfig& c) { c.model.heads = 3; }, "model.", "heads"},
      {[](TrainConfig& c) { c.optimizer.weight_decay = -1; },
       "optimizer.weight_decay:",
       "weight-decay"},
      {[](TrainConfig& c) { c.optimizer.clip_norm = -1; }, "optimizer.clip_norm:", "clip"},
      {[](TrainConfig& c) { c.schedule.peak = -1; }, "schedule.peak:", "lr"},
      {[](TrainConfig& c) { c.data.size = 1; }, "data.size: 1,", "text-size"},
      {[](TrainConfig& c) { c.data.path = "p"; }, "data.path:", "text"}};
  for (const Case& one : cases) {
    TrainConfig config = TinyLlama();
    one.spoil(config);
    const std::string plain = CheckMessage({}, config);
    ASSERT_TRUE(plain.starts_with(one.key)) << plain;
    const std::string behind = plain.substr(plain.find_first_of(": "));
    EXPECT_EQ(CheckMessage({{one.option, ""}, {"captions", ""}, {"shapes", ""}}, config),
              "--" + one.option + behind);
  }
}

TEST(CheckTraining, KeysOfImagesAreNamedByTheirOptions) {
  const std::map<std::string, std::string> options = {
      {"image", ""}, {"shapes", ""}, {"captions", ""}, {"text", ""}, {"text-size", ""}};
  TrainConfig config = TinyClip();
  config.data.image = 15;
  EXPECT_TRUE(CheckMessage({}, config).starts_with("data.image: 15, expected"));
  EXPECT_TRUE(CheckMessage(options, config).starts_with("--image: 15, expected"));
  config = TinyClip();
  config.data.size = 1;
  EXPECT_TRUE(CheckMessage(options, config).starts_with("--shapes: 1, expected"));
  config = TinyClip();
  config.data.kind = DataKind::kCaptions;
  EXPECT_TRUE(CheckMessage(options, config).starts_with("--captions: missing"));
}

TEST(CheckTraining, SizesDecideLayersWidthAndHeads) {
  TrainConfig config = TinyLlama();
  config.model.width = 33;
  EXPECT_TRUE(CheckMessage({{"sizes", ""}}, config).starts_with("--sizes: "));
  EXPECT_TRUE(CheckMessage({{"sizes", ""}, {"heads", ""}}, config).starts_with("--heads: "))
      << CheckMessage({{"sizes", ""}, {"heads", ""}}, config);
}

// A dot, and the name of an option behind it.
TEST(CheckTraining, PathsAreNoKeys) {
  TrainConfig config = TinyLlama();
  config.data.kind = DataKind::kText;
  for (const std::string path : {"/nowhere/some.batch", "no.batch", "train.batch.txt"}) {
    config.data.path = path;
    const std::string message = CheckMessage({{"batch", ""}, {"text", ""}}, config);
    EXPECT_TRUE(message.starts_with(path)) << message;
  }
}

TEST(CheckTrainings, LooksAtEveryConfiguration) {
  std::vector<TrainConfig> configs(3, TinyLlama());
  EXPECT_EQ(ErrorOf([&] { CheckTrainings(With({}), configs, {}); }), "no error");
  configs[2].train.batch = 1 << 12;
  const auto message_of = [&](const OptionsOfKeys& options) {
    return ErrorOf([&] { CheckTrainings(With({{"batch", ""}, {"some", ""}}), configs, options); });
  };
  EXPECT_TRUE(message_of({}).starts_with("--batch: ")) << message_of({});
  EXPECT_TRUE(message_of({{"train.batch", "some"}}).starts_with("--some: "));
  EXPECT_TRUE(message_of({{"train.batch", "undeclared"}}).starts_with("--batch: "));
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
