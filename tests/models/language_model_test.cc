// The language models: against a naive second version, finite differences, float against double,
// and what must not influence what.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/models/model.h"
#include "tests/models/language_model_problem.h"
#include "tests/reference/models/naive_language_model.h"
#include "tests/support/finite_differences.h"

namespace numsim {
namespace {

TEST(LanguageModel, LossIsThatOfTheNaiveVersion) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    SCOPED_TRACE(Describe(config));
    const auto model = MakeUnsettled<double>(config);
    // Shorter than the context, then as long.
    for (const size_t length : {size_t{4}, config.context}) {
      const Batch batch = RandomText(3, length, config.vocabulary, 5);
      const double loss = model->Forward({}, batch).Mean();
      EXPECT_NEAR(loss, NaiveLanguageLoss(config, model->parameters(), batch), 1e-12);
    }
  }
}

TEST(LanguageModel, GradientsAreDifferenceQuotients) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    SCOPED_TRACE(Describe(config));
    const auto model = MakeUnsettled<double>(config);
    ExpectModelGradients(*model, RandomText(2, 5, config.vocabulary, 6));
  }
}

// Root mean square of a - b over that of a.
double RelativeError(std::span<const double> a, std::span<const float> b) {
  double error = 0, square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    square += a[i] * a[i];
  }
  return std::sqrt(error / std::max(square, 1e-30));
}

TEST(LanguageModel, FloatIsCloseToDouble) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    SCOPED_TRACE(Describe(config));
    const Batch batch = RandomText(3, config.context, config.vocabulary, 7);
    const auto exact = MakeUnsettled<double>(config);
    const auto model = MakeUnsettled<float>(config);
    EXPECT_NEAR(exact->Forward({}, batch).Mean(), model->Forward({}, batch).Mean(), 2e-6);
    exact->Backward({});
    model->Backward({});
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const Parameter<double>& a = exact->parameters()[i];
      const Parameter<float>& b = model->parameters()[i];
      EXPECT_EQ(RelativeError(a.value.View().Span(), b.value.View().Span()), 0) << a.name;
      // Of gradients that are 0 in exact arithmetic (the bias of a key's norm) only that they are
      // small is true.
      double largest = 0;
      for (const double g : a.gradient.View().Span()) largest = std::max(largest, std::abs(g));
      if (largest < 1e-12) continue;
      EXPECT_LT(RelativeError(a.gradient.View().Span(), b.gradient.View().Span()), 2e-5) << a.name;
    }
  }
}

TEST(LanguageModel, BitsDoNotDependOnThreads) {
  const int threads = ThreadCount();
  for (const ModelKind kind : kLanguageModels) {
    ModelConfig config = TinyLanguageModel(kind);
    config.width = 48;
    config.hidden = 0;
    config.context = 40;
    const auto model = MakeModel<float>(config, {}, 1);
    const Batch batch = RandomText(4, config.context, config.vocabulary, 8);
    SetThreadCount(1);
    const std::vector<float> one = LossAndGradients(*model, {}, batch);
    SetThreadCount(2);
    EXPECT_EQ(one, LossAndGradients(*model, {}, batch)) << ToString(kind);
    SetThreadCount(threads);
  }
}

TEST(LanguageModel, RepeatsAPassWhateverCameBetween) {
  for (const ModelKind kind : kLanguageModels) {
    const ModelConfig config = TinyLanguageModel(kind);
    const auto model = MakeModel<float>(config, {}, 1);
    const Batch batch = RandomText(2, 4, config.vocabulary, 9);
    const std::vector<float> first = LossAndGradients(*model, {}, batch);
    // A larger batch, and a forward pass alone, as validation has it.
    LossAndGradients(*model, {}, RandomText(3, config.context, config.vocabulary, 10));
    model->Forward({}, RandomText(1, 5, config.vocabulary, 11));
    EXPECT_EQ(first, LossAndGradients(*model, {}, batch)) << ToString(kind);
  }
}

// Logits of a forward pass.
std::vector<float> Logits(Model<float>& model, const Batch& batch) {
  Recorder<float> recorder;
  Pass<float> pass;
  pass.observer = &recorder;
  model.Forward(pass, batch);
  return recorder.Activation("head");
}

TEST(LanguageModel, SequencesDoNotSeeTheirNeighbours) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    SCOPED_TRACE(Describe(config));
    const auto model = MakeUnsettled<float>(config);
    const Batch two = RandomText(2, 5, config.vocabulary, 12);
    Batch second;
    second.examples = 1;
    second.length = 5;
    second.tokens.assign(two.tokens.begin() + 5, two.tokens.end());
    second.targets.assign(two.targets.begin() + 5, two.targets.end());
    const std::vector<float> together = Logits(*model, two), alone = Logits(*model, second);
    EXPECT_TRUE(std::equal(
        alone.begin(), alone.end(), together.begin() + static_cast<ptrdiff_t>(alone.size())));
  }
}

TEST(LanguageModel, TokensDoNotSeeLaterOnes) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    SCOPED_TRACE(Describe(config));
    const auto model = MakeUnsettled<float>(config);
    Batch batch = RandomText(1, config.context, config.vocabulary, 13);
    const std::vector<float> before = Logits(*model, batch);
    constexpr size_t kChanged = 3;
    batch.tokens[kChanged] = (batch.tokens[kChanged] + 1) % static_cast<int>(config.vocabulary);
    const std::vector<float> after = Logits(*model, batch);
    for (size_t t = 0; t < config.context; ++t) {
      const auto begin = static_cast<ptrdiff_t>(t * config.vocabulary);
      const auto end = begin + static_cast<ptrdiff_t>(config.vocabulary);
      EXPECT_EQ(std::equal(before.begin() + begin, before.begin() + end, after.begin() + begin),
                t < kChanged)
          << t;
    }
  }
}

TEST(LanguageModel, TokensWithoutTargetDoNotCount) {
  const ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  const auto model = MakeUnsettled<double>(config);
  Batch batch = RandomText(2, 4, config.vocabulary, 14, false);
  EXPECT_EQ(model->Forward({}, batch).counted, 8U);
  std::fill(batch.targets.begin() + 4, batch.targets.end(), -1);
  const LossSum half = model->Forward({}, batch);
  EXPECT_EQ(half.counted, 4U);
  batch.examples = 1;
  batch.tokens.resize(4);
  batch.targets.resize(4);
  EXPECT_NEAR(model->Forward({}, batch).sum, half.sum, 1e-12);
}

TEST(LanguageModel, LossScaleIsAFactorOfAllGradients) {
  for (const ModelKind kind : kLanguageModels) {
    const ModelConfig config = TinyLanguageModel(kind);
    const auto model = MakeUnsettled<float>(config);
    const Batch batch = RandomText(2, 4, config.vocabulary, 15);
    std::vector<float> plain = LossAndGradients(*model, {}, batch);
    Pass<float> pass;
    pass.loss_scale = 1024;
    const std::vector<float> scaled = LossAndGradients(*model, pass, batch);
    ASSERT_EQ(plain[0], scaled[0]);
    for (size_t i = 1; i < plain.size(); ++i) plain[i] *= 1024;
    plain[0] = scaled[0];
    EXPECT_EQ(plain, scaled) << ToString(kind);
  }
}

// Standard deviation about 0.
double Deviation(Model<float>& model, const std::string& name) {
  const Parameter<float>* const parameter = model.parameters().Find(name);
  if (parameter == nullptr) {
    ADD_FAILURE() << name;
    return 0;
  }
  double square = 0;
  for (const float v : parameter->value.View().Span()) square += double{v} * v;
  return std::sqrt(square / static_cast<double>(parameter->Elements()));
}

TEST(LanguageModel, StartsAsThePaperSays) {
  for (const ModelKind kind : kLanguageModels) {
    SCOPED_TRACE(ToString(kind));
    ModelConfig config;
    config.kind = kind;
    config.layers = 8;  // branches: 1/4
    const auto model = MakeModel<float>(config, {}, 1);
    const std::string up = kind == ModelKind::kLlama ? "gate_up" : "up";
    EXPECT_NEAR(Deviation(*model, "embedding.tokens"), 0.02, 4e-4);
    EXPECT_NEAR(Deviation(*model, "blocks.3.attention.qkv.weight"), 0.02, 4e-4);
    EXPECT_NEAR(Deviation(*model, "blocks.3.mlp." + up + ".weight"), 0.02, 4e-4);
    EXPECT_NEAR(Deviation(*model, "head.weight"), 0.02, 4e-4);
    EXPECT_NEAR(Deviation(*model, "blocks.7.attention.out.weight"), 0.005, 1e-4);
    EXPECT_NEAR(Deviation(*model, "blocks.7.mlp.down.weight"), 0.005, 1e-4);
    if (kind == ModelKind::kGpt) {
      EXPECT_NEAR(Deviation(*model, "embedding.positions"), 0.01, 2e-4);
    }
    for (const Parameter<float>& p : model->parameters()) {
      const std::span<const float> values = p.value.View().Span();
      const float constant = p.role == ParameterRole::kGain ? 1 : 0;
      if (p.role != ParameterRole::kGain && p.role != ParameterRole::kBias) continue;
      EXPECT_EQ(std::count(values.begin(), values.end(), constant),
                static_cast<ptrdiff_t>(values.size()))
          << p.name;
    }
    // Logits near 0: the loss is nearly that of a uniform guess.
    const Batch batch = RandomText(4, 16, config.vocabulary, 16);
    EXPECT_NEAR(model->Forward({}, batch).Mean(), std::log(256), 0.1);

    config.scaled_branches = false;
    config.initial_deviation = 0.1;
    const auto other = MakeModel<float>(config, {}, 1);
    EXPECT_NEAR(Deviation(*other, "embedding.tokens"), 0.1, 2e-3);
    EXPECT_NEAR(Deviation(*other, "blocks.7.mlp.down.weight"), 0.1, 2e-3);
  }
}

TEST(LanguageModel, HiddenWidthFollowsFromTheWidth) {
  const auto rows = [](ModelKind kind, size_t width, const std::string& layer) {
    ModelConfig config = TinyLanguageModel(kind);
    config.width = width;
    config.heads = 1;
    config.hidden = 0;
    return MakeModel<float>(config, {}, 1)->parameters().Find(layer)->value.View().rows;
  };
  EXPECT_EQ(rows(ModelKind::kGpt, 20, "blocks.0.mlp.up.weight"), 80U);
  // 8/3 * 24 = 64; 8/3 * 26 = 69.3; of the gate as much again.
  EXPECT_EQ(rows(ModelKind::kLlama, 24, "blocks.0.mlp.gate_up.weight"), 128U);
  EXPECT_EQ(rows(ModelKind::kLlama, 26, "blocks.0.mlp.gate_up.weight"), 192U);
  EXPECT_EQ(rows(ModelKind::kLlama, 128, "blocks.0.mlp.gate_up.weight"), 2 * 352U);
}

}  // namespace
}  // namespace numsim
