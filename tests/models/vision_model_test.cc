#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "numsim/models/internal/image_tower.h"
#include "numsim/models/model.h"
#include "tests/models/overfit.h"
#include "tests/support/error_of.h"
#include "tests/support/image_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::unique_ptr<Model<T>> MakeUnsettledVision(const ModelConfig& config) {
  auto model = MakeModel<T>(config, Float32Products(), 1);
  Unsettle(model->parameters(), 0.3F, 2);
  return model;
}

TEST(VisionModel, GradientsAreDifferenceQuotients) {
  for (const ModelConfig& config : ImageModelConfigs(ModelKind::kVit)) {
    const auto model = MakeUnsettledVision<double>(config);
    ExpectModelGradients(*model, RandomImages(config, 2, 6), FewDifferences());
  }
}

TEST(VisionModel, GradientsWithDroppedPatchesAreDifferenceQuotients) {
  for (const ModelKind kind : {ModelKind::kVit, ModelKind::kClip}) {
    ModelConfig config = TinyImageModel(kind);
    config.patch_dropout = 0.5;
    const auto model = MakeModel<double>(config, Float32Products(), 1);
    Unsettle(model->parameters(), 0.3F, 2);
    Pass<double> pass;
    pass.seed = 3;
    pass.step = 4;
    pass.training = true;
    ExpectModelGradients(*model, RandomImages(config, 3, 6), FewDifferences(), pass);
  }
}

TEST(VisionModel, PatchesAreDroppedInTrainingAlone) {
  ModelConfig config = TinyImageModel(ModelKind::kVit);
  const Batch batch = RandomImages(config, 3, 6);
  const auto whole = MakeUnsettledVision<float>(config);
  config.patch_dropout = 0.5;
  const auto dropping = MakeUnsettledVision<float>(config);
  Pass<float> pass;
  const double loss = whole->Forward(pass, batch).Mean();
  EXPECT_EQ(dropping->Forward(pass, batch).Mean(), loss);
  pass.training = true;
  EXPECT_EQ(whole->Forward(pass, batch).Mean(), loss);
  const double first = dropping->Forward(pass, batch).Mean();
  EXPECT_NE(first, loss);
  EXPECT_EQ(dropping->Forward(pass, batch).Mean(), first);
  pass.step = 1;
  EXPECT_NE(dropping->Forward(pass, batch).Mean(), first);
}

// Each of the 6 choices of 2 of 4 patches is equally likely, per image and per step.
TEST(DrawKeptRows, AreTheClassTokenAndEquallyLikelyPatches) {
  std::map<std::vector<int32_t>, int> counts;
  constexpr size_t kImages = 3000;
  const std::vector<int32_t> rows = DrawKeptRows(1, 2, kImages, 5, 3);
  ASSERT_EQ(rows.size(), 3 * kImages);
  for (size_t i = 0; i < kImages; ++i) {
    const auto first = static_cast<int32_t>(5 * i);
    ASSERT_EQ(rows[3 * i], first);
    ASSERT_LT(rows[3 * i + 1], rows[3 * i + 2]);
    ASSERT_LE(rows[3 * i + 2], first + 4);
    ++counts[{rows[3 * i + 1] - first, rows[3 * i + 2] - first}];
  }
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [choice, count] : counts) EXPECT_NEAR(count, 500, 5 * std::sqrt(500 * 5 / 6.0));
  EXPECT_NE(DrawKeptRows(1, 3, kImages, 5, 3), rows);
  EXPECT_NE(DrawKeptRows(2, 2, kImages, 5, 3), rows);
}

TEST(VisionModel, FloatIsCloseToDouble) {
  for (const ModelConfig& config : ImageModelConfigs(ModelKind::kVit)) {
    ExpectFloatToBeCloseToDouble(*MakeUnsettledVision<float>(config),
                                 *MakeUnsettledVision<double>(config),
                                 RandomImages(config, 3, 7),
                                 1e-5);
  }
}

TEST(VisionModel, HasTheSameBitsOnEveryTargetWithAnyThreads) {
  ModelConfig config = ImageModelConfigs(ModelKind::kVit)[1];
  config.width = 48;
  ExpectSameBitsEverywhere(
      *MakeUnsettledVision<float>(config), RandomImages(config, 64, 8), RandomImages(config, 2, 8));
}

TEST(VisionModel, LossScaleIsAFactorOfAllGradients) {
  const ModelConfig config = TinyImageModel(ModelKind::kVit);
  ExpectLossScaleToBeAFactor(*MakeUnsettledVision<float>(config), RandomImages(config, 3, 9));
}

TEST(VisionModel, PassesTakeNoTensorsAfterTheFirst) {
  ModelConfig config = TinyImageModel(ModelKind::kVit);
  config.width = config.hidden = 48;
  ExpectNoTensorsTaken(*MakeUnsettledVision<float>(config), RandomImages(config, 16, 10));
  ExpectNoTensorsTaken(*MakeUnsettledVision<double>(config), RandomImages(config, 16, 10));
}

TEST(VisionModel, LearnsFourImagesByHeart) {
  const ModelConfig config = TinyImageModel(ModelKind::kVit);
  const auto model = MakeModel<float>(config, {}, 1);
  Batch batch = RandomImages(config, 4, 11);
  batch.targets = {3, 0, 3, 1};
  EXPECT_NEAR(model->Forward({}, batch).Mean(), std::log(5.0), 1e-6);  // the head starts as zeros
  EXPECT_LT(Overfit(*model, batch, 100, 1e-2), 0.01);
  const LossSum loss = model->Forward({}, batch);
  EXPECT_EQ(loss.correct, 4u);
  EXPECT_EQ(loss.counted, 4u);
}

// Row `row` of what was shown at a point.
std::vector<double> RowOf(const Recorder<double>& recorder,
                          const std::string& point,
                          size_t row,
                          size_t cols) {
  const std::vector<double>& all = recorder.Activation(point);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * cols);
  return {begin, begin + static_cast<std::ptrdiff_t>(cols)};
}

double At(Model<double>& model, const std::string& name, size_t row, size_t col) {
  return model.parameters().Find(name)->value.View().Row(row)[col];
}

// Element `out` of patch (py, px) of an image, projected.
double Patch(Model<double>& model, const float* image, size_t py, size_t px, size_t out) {
  double sum = At(model, "patches.bias", 0, out);
  size_t in = 0;
  for (size_t y = 0; y < 3; ++y) {
    for (size_t x = 0; x < 3; ++x) {
      for (size_t c = 0; c < 2; ++c, ++in) {
        const double pixel = image[((3 * py + y) * 6 + 3 * px + x) * 2 + c];
        sum += At(model, "patches.weight", out, in) * pixel;
      }
    }
  }
  return sum;
}

TEST(VisionModel, BlocksSeeTheClassTokenAndThePatchesWithPositions) {
  const ModelConfig config = TinyImageModel(ModelKind::kVit);
  const auto model = MakeUnsettledVision<double>(config);
  const Batch batch = RandomImages(config, 2, 12);
  Recorder<double> recorder;
  Pass<double> pass;
  pass.observer = &recorder;
  model->Forward(pass, batch);
  for (size_t image = 0; image < 2; ++image) {
    for (size_t t = 0; t < 5; ++t) {
      const std::vector<double> row = RowOf(recorder, "embedding", image * 5 + t, 12);
      for (size_t c = 0; c < 12; ++c) {
        const double content =
            t == 0 ? At(*model, "class_token", 0, c)
                   : Patch(*model, &batch.values[image * 72], (t - 1) / 2, (t - 1) % 2, c);
        EXPECT_NEAR(row[c], content + At(*model, "positions", t, c), 1e-12) << t << ' ' << c;
      }
    }
  }
}

TEST(VisionModel, HeadSeesTheNormalisedRowOfTheClassToken) {
  const ModelConfig config = TinyImageModel(ModelKind::kVit);
  const auto model = MakeUnsettledVision<double>(config);
  Recorder<double> recorder;
  Pass<double> pass;
  pass.observer = &recorder;
  model->Forward(pass, RandomImages(config, 2, 13));
  const std::vector<double> stream = RowOf(recorder, "blocks.1", 5, 12);  // of the second image
  double mean = 0, variance = 0;
  for (const double x : stream) mean += x / 12;
  for (const double x : stream) variance += (x - mean) * (x - mean) / 12;
  const std::vector<double> logits = RowOf(recorder, "head", 1, 5);
  for (size_t k = 0; k < 5; ++k) {
    double sum = At(*model, "head.bias", 0, k);
    for (size_t c = 0; c < 12; ++c) {
      const double normed = (stream[c] - mean) / std::sqrt(variance + config.norm_epsilon) *
                                At(*model, "final_norm.gain", 0, c) +
                            At(*model, "final_norm.bias", 0, c);
      sum += At(*model, "head.weight", k, c) * normed;
    }
    EXPECT_NEAR(logits[k], sum, 1e-12);
  }
}

TEST(VisionModel, EveryPixelCountsForItsImageAlone) {
  const ModelConfig config = TinyImageModel(ModelKind::kVit);
  const auto model = MakeUnsettledVision<double>(config);
  const Batch batch = RandomImages(config, 2, 14);
  Recorder<double> recorder;
  Pass<double> pass;
  pass.observer = &recorder;
  model->Forward(pass, batch);
  const std::vector<double> first = RowOf(recorder, "head", 0, 5);
  const std::vector<double> second = RowOf(recorder, "head", 1, 5);
  for (size_t pixel = 0; pixel < 72; ++pixel) {
    Batch changed = batch;
    changed.values[pixel] += 1;
    model->Forward(pass, changed);
    EXPECT_NE(RowOf(recorder, "head", 0, 5), first) << pixel;
    EXPECT_EQ(RowOf(recorder, "head", 1, 5), second) << pixel;
  }
}

TEST(VisionModel, StartsAsThePublishedCode) {
  ModelConfig config;
  config.kind = ModelKind::kVit;
  config.layers = 1;
  config.width = 64;
  config.hidden = 96;
  const auto model = MakeModel<float>(config, {}, 3);
  ExpectDeviation(*model, "patches.weight", 1 / std::sqrt(48.0));
  ExpectDeviation(*model, "positions", 0.02);
  ExpectDeviation(*model, "class_token", 0);
  ExpectDeviation(*model, "head.weight", 0);
  ExpectDeviation(*model, "patches.bias", 0);
  ExpectDeviation(*model, "blocks.0.attention.qkv.weight", 1 / std::sqrt(64.0));
  ExpectDeviation(*model, "blocks.0.attention.out.weight", 1 / std::sqrt(64.0));
  ExpectDeviation(*model, "blocks.0.mlp.up.weight", std::sqrt(2.0 / 160));
  ExpectDeviation(*model, "blocks.0.mlp.down.weight", std::sqrt(2.0 / 160));
}

TEST(VisionModel, NamesItsLayersAndCountsTheirProducts) {
  const ModelConfig config = TinyImageModel(ModelKind::kVit);
  const auto model = MakeModel<float>(config, {}, 4);
  const std::vector<std::string> names = {"patches",
                                          "blocks.0.attention.qkv",
                                          "blocks.0.attention.out",
                                          "blocks.0.mlp.up",
                                          "blocks.0.mlp.down",
                                          "blocks.1.attention.qkv",
                                          "blocks.1.attention.out",
                                          "blocks.1.mlp.up",
                                          "blocks.1.mlp.down",
                                          "head"};
  EXPECT_EQ(model->LinearLayers(), names);
  const double block = 5 * (12 * 36 + 12 * 12 + 2 * 12 * 10);
  EXPECT_EQ(model->ForwardFlops(3), 3 * 2 * (4 * 18 * 12 + 2 * block + 12 * 5));
}

TEST(VisionModel, FirstAndLastLayerMayStayInHighPrecision) {
  const ModelConfig config = TinyImageModel(ModelKind::kVit);
  LinearPrecision precision;
  precision.all.kind = "te-hybrid";
  precision.all.delayed.emplace();
  precision.first_last_high = true;
  const auto model = MakeModel<float>(config, precision, 5);
  std::vector<std::string> delayed;
  for (const NamedState& state : model->SaveState()) delayed.push_back(state.name);
  std::vector<std::string> names = model->LinearLayers();
  names.erase(names.begin());
  names.pop_back();
  EXPECT_EQ(delayed, names);
}

TEST(VisionModel, BadConfigurationsAreErrors) {
  ModelConfig config = TinyImageModel(ModelKind::kVit);
  LinearPrecision precision;
  precision.overrides.emplace_back().layers = "*.gate_up";
  EXPECT_THAT(ErrorOf([&] { MakeModel<float>(config, precision, 1); }), HasSubstr("*.gate_up"));
  config.patch = 4;
  EXPECT_EQ(ErrorOf([&] { MakeModel<float>(config, {}, 1); }),
            "model.patch: 4 does not divide model.image = 6");
}

}  // namespace
}  // namespace numsim
