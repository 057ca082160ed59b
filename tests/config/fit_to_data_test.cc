// FitToData: what a model takes over from its data, and what does not fit.
#include <gtest/gtest.h>

#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

TrainConfig Model(const std::string& kind, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = more;
  overrides.insert(overrides.begin(), "model.kind=" + kind);
  return ParseTrainConfig("", "test", {}, overrides);
}

DataShape Text() {
  DataShape shape;
  shape.vocabulary = 300;
  return shape;
}
DataShape Images() {
  DataShape shape;
  shape.height = shape.width = 28;
  shape.channels = 1;
  shape.classes = 7;
  return shape;
}
DataShape Captions() {
  DataShape shape;
  shape.vocabulary = 90;
  shape.length = 24;
  shape.height = shape.width = 32;
  shape.channels = 3;
  return shape;
}
DataShape Features() {
  DataShape shape;
  shape.features = 48;
  return shape;
}

TEST(FitToData, LanguageModelsTakeTheVocabularyAndKeepTheirContext) {
  for (const char* const kind : {"llama", "gpt"}) {
    TrainConfig config = Model(kind, {"model.context=40"});
    FitToData(config, Text());
    EXPECT_EQ(config.model.vocabulary, 300u);
    EXPECT_EQ(config.model.context, 40u);
  }
}

TEST(FitToData, ClassifierTakesImagesAndClasses) {
  TrainConfig config = Model("vit", {"model.patch=7"});
  FitToData(config, Images());
  EXPECT_EQ(config.model.image, 28u);
  EXPECT_EQ(config.model.channels, 1u);
  EXPECT_EQ(config.model.classes, 7u);
}

TEST(FitToData, ClipTakesImagesVocabularyAndLengthOfCaptions) {
  TrainConfig config = Model("clip", {"model.patch=8"});
  FitToData(config, Captions());
  EXPECT_EQ(config.model.image, 32u);
  EXPECT_EQ(config.model.channels, 3u);
  EXPECT_EQ(config.model.vocabulary, 90u);
  EXPECT_EQ(config.model.context, 24u);
}

TEST(FitToData, StudentTakesTheFeatures) {
  TrainConfig config = Model("mlp");
  FitToData(config, Features());
  EXPECT_EQ(config.model.inputs, 48u);
}

TEST(FitToData, ScheduleEndsWithTheTraining) {
  TrainConfig config = Model("mlp");
  config.train.steps = 17;
  FitToData(config, Features());
  EXPECT_EQ(config.schedule.steps, 17u);
}

TEST(FitToData, DataOfAnotherKindAreRefused) {
  const std::vector<std::pair<std::string, DataShape>> fitting = {{"llama", Text()},
                                                                  {"gpt", Text()},
                                                                  {"vit", Images()},
                                                                  {"clip", Captions()},
                                                                  {"mlp", Features()}};
  for (const auto& model : fitting) {
    for (const auto& data : fitting) {
      const bool text = model.first == "llama" || model.first == "gpt";
      if (model.first == data.first || (text && data.second.vocabulary == 300)) continue;
      TrainConfig config = Model(model.first);
      ExpectMessage(ErrorOf([&config, &data] { FitToData(config, data.second); }),
                    {"data.kind: ", "'" + model.first + "'"});
    }
  }
}

TEST(FitToData, ImagesThatDoNotFitArePointedOut) {
  TrainConfig config = Model("vit", {"model.patch=5"});
  ExpectMessage(ErrorOf([&] { FitToData(config, Images()); }), {"model.patch: 5", "28"});
  DataShape oblong = Images();
  oblong.width = 20;
  ExpectMessage(ErrorOf([&] { FitToData(config, oblong); }), {"data.path: ", "28", "20"});
}

TEST(FitToData, TextHasNoInputsWithTailsOrContrast) {
  const std::string tail = "stress.input_tail", contrast = "stress.jump_contrast";
  for (const char* const kind : {"llama", "gpt"}) {
    for (const std::string& key : {tail, contrast}) {
      TrainConfig config = Model(kind, {key + "=0.5"});
      ExpectMessage(ErrorOf([&config] { FitToData(config, Text()); }), {key + ": "});
    }
  }
  for (const auto& [kind, data] : {std::pair{"clip", Captions()}, std::pair{"mlp", Features()}}) {
    TrainConfig config = Model(kind, {tail + "=0.5", contrast + "=2", "model.patch=8"});
    FitToData(config, data);
    EXPECT_EQ(config.stress.input_tail, 0.5);
    EXPECT_EQ(config.stress.jump_contrast, 2);
  }
}

// A configuration that no file made is checked as one that a file did.
TEST(FitToData, ChecksTheConfiguration) {
  const auto error = [](auto change) {
    TrainConfig config = Model("llama");
    change(config);
    return ErrorOf([&config] { FitToData(config, Text()); });
  };
  EXPECT_EQ(error([](TrainConfig&) {}), "no error");
  ExpectMessage(error([](TrainConfig& c) { c.train.steps = 0; }), {"train.steps: "});
  ExpectMessage(error([](TrainConfig& c) { c.train.batch = 0; }), {"train.batch: "});
  ExpectMessage(error([](TrainConfig& c) { c.telemetry.every = 0; }), {"telemetry.every: "});
  ExpectMessage(error([](TrainConfig& c) { c.model.heads = 3; }), {"model.heads: "});
  ExpectMessage(error([](TrainConfig& c) { c.linear.all.kind = "nope"; }),
                {"linear.kind: ", "nope"});
  ExpectMessage(error([](TrainConfig& c) { c.optimizer.beta1 = 1; }), {"optimizer.beta1: "});
}

}  // namespace
}  // namespace numsim
