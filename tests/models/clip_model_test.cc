#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "numsim/models/model.h"
#include "tests/models/overfit.h"
#include "tests/support/image_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::unique_ptr<Model<T>> MakeUnsettledClip(const ModelConfig& config) {
  auto model = MakeModel<T>(config, Float32Products(), 1);
  Unsettle(model->parameters(), 0.3F, 2);
  return model;
}

double& LogitScale(Model<double>& model) {
  return model.parameters().Find("logit_scale")->value.View().Span()[0];
}

double LogitScaleGradient(Model<double>& model) {
  return model.parameters().Find("logit_scale")->gradient.View().Span()[0];
}

TEST(ClipModel, GradientsAreDifferenceQuotients) {
  for (const ModelConfig& config : ImageModelConfigs(ModelKind::kClip)) {
    const auto model = MakeUnsettledClip<double>(config);
    DifferenceOptions options = FewDifferences();
    options.step = 3e-4;  // logits move fast: e^t is about 14
    options.tolerance = 1e-5;
    ExpectModelGradients(*model, RandomImages(config, 3, 6), options);
  }
}

TEST(ClipModel, FloatIsCloseToDouble) {
  for (const ModelConfig& config : ImageModelConfigs(ModelKind::kClip)) {
    ExpectFloatToBeCloseToDouble(*MakeUnsettledClip<float>(config),
                                 *MakeUnsettledClip<double>(config),
                                 RandomImages(config, 4, 7),
                                 3e-5);
  }
}

TEST(ClipModel, HasTheSameBitsOnEveryTargetWithAnyThreads) {
  ModelConfig config = ImageModelConfigs(ModelKind::kClip)[1];
  config.width = config.text_width = 48;
  ExpectSameBitsEverywhere(
      *MakeUnsettledClip<float>(config), RandomImages(config, 50, 8), RandomImages(config, 2, 8));
}

TEST(ClipModel, LossScaleIsAFactorOfAllGradients) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  ExpectLossScaleToBeAFactor(*MakeUnsettledClip<float>(config), RandomImages(config, 3, 9));
}

TEST(ClipModel, PassesTakeNoTensorsAfterTheFirst) {
  ModelConfig config = TinyImageModel(ModelKind::kClip);
  config.width = config.hidden = config.text_width = config.embedding = 48;
  ExpectNoTensorsTaken(*MakeUnsettledClip<float>(config), RandomImages(config, 40, 10));
  ExpectNoTensorsTaken(*MakeUnsettledClip<double>(config), RandomImages(config, 40, 10));
}

TEST(ClipModel, LearnsFourPairsByHeart) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeModel<float>(config, {}, 1);
  const Batch batch = RandomImages(config, 4, 11);
  EXPECT_GT(model->Forward({}, batch).Mean(), 0.5);
  EXPECT_LT(Overfit(*model, batch, 150, 1e-2), 0.01);
  const LossSum loss = model->Forward({}, batch);
  EXPECT_EQ(loss.counted, 8u);
  EXPECT_EQ(loss.correct, 8u);
}

using Rows = std::vector<std::vector<double>>;

// The tensor that a pass showed under a name, `count` rows, each brought to norm 1.
Rows UnitRows(const Recorder<double>& recorder, const std::string& point, size_t count) {
  const std::vector<double>& all = recorder.Activation(point);
  Rows rows(count);
  for (size_t i = 0; i < all.size(); ++i) rows[i * count / all.size()].push_back(all[i]);
  for (std::vector<double>& row : rows) {
    double square = 0;
    for (const double x : row) square += x * x;
    for (double& x : row) x /= std::sqrt(square);
  }
  return rows;
}

struct NaiveLoss {
  double mean = 0;
  size_t correct = 0;
};

// The pseudocode of the paper: symmetric cross entropies of one matrix.
NaiveLoss Contrast(const Rows& u,
                   const Rows& v,
                   double scale,
                   const std::vector<int32_t>& concepts) {
  const size_t n = u.size();
  Rows logits(n, std::vector<double>(n)), columns = logits;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double cosine = 0;
      for (size_t c = 0; c < u[i].size(); ++c) cosine += u[i][c] * v[j][c];
      logits[i][j] = columns[j][i] = scale * cosine;
    }
  }
  NaiveLoss loss;
  for (const Rows* const side : {&logits, &columns}) {
    for (size_t i = 0; i < n; ++i) {
      const std::vector<double>& row = (*side)[i];
      double sum = 0;
      for (const double x : row) sum += std::exp(x);
      loss.mean += (std::log(sum) - row[i]) / static_cast<double>(2 * n);
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      if (concepts[static_cast<size_t>(best)] == concepts[i]) ++loss.correct;
    }
  }
  return loss;
}

TEST(ClipModel, LossIsTheMeanOverImagesAndCaptions) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeUnsettledClip<double>(config);
  for (const size_t pairs : {1, 2, 5}) {
    Batch batch = RandomImages(config, pairs, 12);
    Recorder<double> recorder;
    Pass<double> pass;
    pass.observer = &recorder;
    const LossSum loss = model->Forward(pass, batch);
    const Rows u = UnitRows(recorder, "image.projection", pairs);
    const Rows v = UnitRows(recorder, "text.projection", pairs);
    const NaiveLoss naive = Contrast(u, v, std::exp(LogitScale(*model)), batch.concepts);
    EXPECT_NEAR(loss.Mean(), naive.mean, 1e-12);
    EXPECT_EQ(loss.counted, 2 * pairs);
    EXPECT_EQ(loss.correct, naive.correct);
  }
}

TEST(ClipModel, AnotherOneOfTheSameConceptCountsAsRight) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeUnsettledClip<double>(config);
  Batch batch = RandomImages(config, 5, 13);
  Recorder<double> recorder;
  Pass<double> pass;
  pass.observer = &recorder;
  const LossSum apart = model->Forward(pass, batch);
  const Rows u = UnitRows(recorder, "image.projection", 5);
  const Rows v = UnitRows(recorder, "text.projection", 5);
  batch.concepts = {7, 8, 7, 8, 7};
  const LossSum shared = model->Forward(pass, batch);
  EXPECT_EQ(shared.correct, Contrast(u, v, 1, batch.concepts).correct);
  EXPECT_GT(shared.correct, apart.correct);
  EXPECT_EQ(shared.sum, apart.sum);  // the loss takes no notice
  batch.concepts.assign(5, 7);
  EXPECT_EQ(model->Forward(pass, batch).correct, 10u);
}

TEST(ClipModel, TemperatureStartsAt007) {
  const auto model = MakeModel<double>(TinyImageModel(ModelKind::kClip), {}, 3);
  EXPECT_NEAR(LogitScale(*model), std::log(1 / 0.07), 1e-7);
  EXPECT_EQ(model->parameters().Find("logit_scale")->role, ParameterRole::kScalar);
}

TEST(ClipModel, TemperatureCountsAsWithinItsLimits) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeUnsettledClip<double>(config);
  const Batch batch = RandomImages(config, 4, 14);
  const auto loss_at = [&](double t) {
    LogitScale(*model) = t;
    return model->Forward({}, batch).Mean();
  };
  const double high = std::log(100.0);
  EXPECT_NEAR(loss_at(high + 1), loss_at(high), 1e-10);
  EXPECT_GT(std::abs(loss_at(high - 0.1) - loss_at(high)), 1e-4);
  EXPECT_EQ(loss_at(-1), loss_at(0));
  EXPECT_GT(std::abs(loss_at(0.1) - loss_at(0)), 1e-4);
}

// The gradient of the temperature at t.
double GradientAt(Model<double>& model, const Batch& batch, double t) {
  LogitScale(model) = t;
  model.Forward({}, batch);
  model.Backward({});
  return LogitScaleGradient(model);
}

TEST(ClipModel, BeyondALimitTheTemperatureIsOnlyLedBack) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeUnsettledClip<double>(config);
  const Batch wrong = RandomImages(config, 4, 15);
  const double high = std::log(100.0), inside = high - 1e-9;
  // Pairs that do not belong together: a lower factor would be better.
  const double back = GradientAt(*model, wrong, inside);
  EXPECT_GT(back, 1e-3);
  EXPECT_NEAR(GradientAt(*model, wrong, high + 2), back, 1e-6 * back);
  // Images that go well with their captions: a higher factor would be better.
  const auto trained = MakeModel<float>(config, {}, 1);
  Overfit(*trained, wrong, 60, 1e-2);
  for (size_t p = 0; p < model->parameters().size(); ++p) {
    const auto from = trained->parameters()[p].value.View().Span();
    std::copy(from.begin(), from.end(), model->parameters()[p].value.View().Span().begin());
  }
  EXPECT_LT(GradientAt(*model, wrong, 1), -1e-3);
  EXPECT_LT(GradientAt(*model, wrong, 1e-9), -1e-3);
  EXPECT_EQ(GradientAt(*model, wrong, high + 2), 0);
  EXPECT_EQ(GradientAt(*model, wrong, high), 0);
  EXPECT_LT(GradientAt(*model, wrong, -3), -1e-3);  // back up
}

TEST(ClipModel, CaptionsEndWithTheirEndToken) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeUnsettledClip<double>(config);
  const Batch batch = RandomImages(config, 3, 16);
  const double loss = model->Forward({}, batch).sum;
  for (size_t b = 0; b < batch.examples; ++b) {
    for (size_t t = 0; t < batch.length; ++t) {
      Batch changed = batch;
      int32_t& token = changed.tokens[b * batch.length + t];
      token = (token + 1) % static_cast<int32_t>(config.vocabulary);
      const bool counts = static_cast<int32_t>(t) <= batch.ends[b];
      EXPECT_EQ(model->Forward({}, changed).sum != loss, counts) << b << ' ' << t;
    }
  }
}

TEST(ClipModel, StartsAsOpenClip) {
  ModelConfig config;
  config.kind = ModelKind::kClip;
  config.layers = 2;
  config.width = 64;
  config.hidden = 128;
  config.text_layers = 3;
  config.text_width = 48;
  const auto model = MakeModel<float>(config, {}, 3);
  ExpectDeviation(*model, "image.patches.weight", 1 / std::sqrt(3 * 48.0));
  ExpectDeviation(*model, "image.class_token", 1 / std::sqrt(64.0));
  ExpectDeviation(*model, "image.positions", 1 / std::sqrt(64.0));
  ExpectDeviation(*model, "image.blocks.1.attention.qkv.weight", 1 / std::sqrt(128.0));
  ExpectDeviation(*model, "image.blocks.1.attention.out.weight", 1 / std::sqrt(3 * 64.0));
  ExpectDeviation(*model, "image.blocks.1.mlp.up.weight", 1 / std::sqrt(3 * 64.0));
  ExpectDeviation(*model, "image.blocks.1.mlp.down.weight", 1 / std::sqrt(3 * 128.0));
  ExpectDeviation(*model, "image.projection.weight", 1 / std::sqrt(64.0));
  ExpectDeviation(*model, "text.embedding.tokens", 0.02);
  ExpectDeviation(*model, "text.embedding.positions", 0.01);
  ExpectDeviation(*model, "text.blocks.2.attention.qkv.weight", 1 / std::sqrt(48.0));
  ExpectDeviation(*model, "text.blocks.2.attention.out.weight", 1 / std::sqrt(6 * 48.0));
  ExpectDeviation(*model, "text.blocks.2.mlp.up.weight", 1 / std::sqrt(2 * 48.0));
  ExpectDeviation(*model, "text.blocks.2.mlp.down.weight", 1 / std::sqrt(6 * 48.0));
  ExpectDeviation(*model, "text.projection.weight", 1 / std::sqrt(48.0));
  EXPECT_EQ(model->parameters().Find("text.blocks.0.mlp.up.weight")->value.View().rows, 96u);
  EXPECT_EQ(model->parameters().Find("image.patches.bias"), nullptr);
  EXPECT_EQ(model->parameters().Find("image.projection.bias"), nullptr);
  config.scaled_branches = false;
  const auto plain = MakeModel<float>(config, {}, 3);
  ExpectDeviation(*plain, "text.blocks.2.mlp.down.weight", 1 / std::sqrt(48.0));
}

TEST(ClipModel, TextTakesWhatIsNotSaidFromImages) {
  ModelConfig config = TinyImageModel(ModelKind::kClip);
  config.text_layers = config.text_width = config.text_heads = config.embedding = 0;
  const auto model = MakeModel<float>(config, {}, 4);
  EXPECT_NE(model->parameters().Find("text.blocks.1.mlp.up.weight"), nullptr);
  EXPECT_EQ(model->parameters().Find("text.blocks.1.mlp.up.weight")->value.View().rows, 10u);
  EXPECT_EQ(model->parameters().Find("text.projection.weight")->value.View().rows, 12u);
  EXPECT_EQ(model->parameters().Find("text.projection.weight")->value.View().cols, 12u);
}

TEST(ClipModel, NamesItsLayersAndCountsTheirProducts) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeModel<float>(config, {}, 5);
  const std::vector<std::string> names = model->LinearLayers();
  EXPECT_EQ(names.size(), 1 + 2 * 4 + 1 + 4 + 1u);
  EXPECT_EQ(names.front(), "image.patches");
  EXPECT_EQ(names[9], "image.projection");
  EXPECT_EQ(names[10], "text.blocks.0.attention.qkv");
  EXPECT_EQ(names.back(), "text.projection");
  const double image = 4 * 18 * 12 + 2 * 5 * (12 * 36 + 12 * 12 + 2 * 12 * 10) + 12 * 7;
  const double text = 6 * (8 * 24 + 8 * 8 + 2 * 8 * 6) + 8 * 7;  // hidden: 10 * 8 / 12
  EXPECT_EQ(model->ForwardFlops(3), 3 * 2 * (image + text));
}

TEST(ClipModel, FirstAndLastLayersMayStayInHighPrecision) {
  LinearPrecision precision;
  precision.all.kind = "te-hybrid";
  precision.all.delayed.emplace();
  precision.first_last_high = true;
  const auto model = MakeModel<float>(TinyImageModel(ModelKind::kClip), precision, 6);
  for (const NamedState& state : model->SaveState()) {
    EXPECT_THAT(state.name, HasSubstr(".blocks."));
  }
  EXPECT_EQ(model->SaveState().size(), model->LinearLayers().size() - 3);
}

TEST(ClipModel, ShowsItsPointsInOrderAndInTheOppositeOne) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeUnsettledClip<double>(config);
  Recorder<double> recorder;
  Pass<double> pass;
  pass.observer = &recorder;
  model->Forward(pass, RandomImages(config, 2, 17));
  model->Backward(pass);
  std::vector<std::string> shown = recorder.order[TensorRole::kActivation];
  const auto has = [&](const char* point) {
    return std::find(shown.begin(), shown.end(), point) != shown.end();
  };
  for (const char* const point : {"image.patches",
                                  "image.embedding",
                                  "image.pre_norm",
                                  "image.blocks.1",
                                  "image.final_norm",
                                  "image.projection",
                                  "text.embedding",
                                  "text.blocks.0.mlp.down",
                                  "text.final_norm",
                                  "text.projection",
                                  "logits"}) {
    EXPECT_TRUE(has(point)) << point;
  }
  std::reverse(shown.begin(), shown.end());
  EXPECT_EQ(recorder.order[TensorRole::kGradient], shown);
}

}  // namespace
}  // namespace numsim
