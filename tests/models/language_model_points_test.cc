// Tests what observers of a language model's passes see, and what their changes do.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/models/model.h"
#include "tests/models/language_model_problem.h"
#include "tests/support/finite_differences.h"

namespace numsim {
namespace {

// The gradient of a point is that of the activation shown there: when an observer adds to an
// activation, the loss moves along the gradient that it saw.
class Nudge : public PassObserver<double> {
 public:
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<double> values) override {
    if (point != target) return;
    const size_t row = values.rows / 2, col = values.cols / 3;
    if (role == TensorRole::kActivation) {
      values.Row(row)[col] += step;
    } else {
      gradient = values.Row(row)[col];
    }
  }
  std::string target;
  double step = 0, gradient = 0;
};

TEST(LanguageModel, GradientsShownAreThoseOfTheActivationsShown) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    const auto model = MakeUnsettled<double>(config);
    const Batch batch = RandomText(2, 5, config.vocabulary, 17, false);
    Recorder<double> recorder;
    Pass<double> pass;
    pass.observer = &recorder;
    model->Forward(pass, batch);
    model->Backward(pass);
    for (const std::string& point : recorder.order[TensorRole::kActivation]) {
      Nudge nudge;
      nudge.target = point;
      pass.observer = &nudge;
      model->Forward(pass, batch);
      model->Backward(pass);
      const double difference = Derivative(
          [&](double step) {
            nudge.step = step;
            return model->Forward(pass, batch).Mean();
          },
          1e-3);
      EXPECT_NEAR(nudge.gradient, difference, 1e-8) << Describe(config) << ' ' << point;
    }
  }
}

// Changes a gradient where it is shown.
class Outlier : public PassObserver<double> {
 public:
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<double> values) override {
    if (role == TensorRole::kGradient && point == target) values.Row(0)[0] += 1;
  }
  std::string target;
};

TEST(LanguageModel, AChangedGradientOfABranchLeavesTheStreamAlone) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    SCOPED_TRACE(Describe(config));
    const auto model = MakeUnsettled<double>(config);
    const Batch batch = RandomText(1, 5, config.vocabulary, 18, false);
    const auto copy = [&](const std::string& layer) {
      const auto values = model->parameters().Find(layer + ".weight")->gradient.View().Span();
      return std::vector<double>(values.begin(), values.end());
    };
    Outlier outlier;
    Pass<double> pass;
    pass.observer = &outlier;
    outlier.target = "none";
    model->Forward(pass, batch);
    model->Backward(pass);
    // The last block's attention reads the stream's gradient, not that of the MLP's branch: only by
    // way of the MLP may it change, and that way is cut.
    const std::vector<double> down = copy("blocks.1.mlp.down");
    for (Parameter<double>& p : model->parameters()) {
      if (p.name.starts_with("blocks.1.mlp.norm.")) {
        for (double& v : p.value.View().Span()) v = 0;
      }
    }
    model->Forward(pass, batch);
    model->Backward(pass);
    const std::vector<double> out = copy("blocks.1.attention.out");
    outlier.target = "blocks.1.mlp.down";
    model->Forward(pass, batch);
    model->Backward(pass);
    EXPECT_EQ(out, copy("blocks.1.attention.out"));
    EXPECT_NE(down, copy("blocks.1.mlp.down"));
  }
}

TEST(LanguageModel, ChangesOfGradientsTakeEffect) {
  for (const ModelConfig& config : LanguageModelConfigs()) {
    const auto model = MakeUnsettled<double>(config);
    const Batch batch = RandomText(1, 5, config.vocabulary, 22, false);
    const std::vector<double> plain = LossAndGradients(*model, {}, batch);
    Recorder<double> recorder;
    Pass<double> pass;
    pass.observer = &recorder;
    model->Forward(pass, batch);
    for (const std::string& point : recorder.order[TensorRole::kActivation]) {
      Outlier outlier;
      outlier.target = point;
      pass.observer = &outlier;
      EXPECT_NE(plain, LossAndGradients(*model, pass, batch)) << Describe(config) << ' ' << point;
    }
  }
}

TEST(LanguageModel, ShowsThePointsThatTransformerLists) {
  ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  config.layers = 1;
  config.qk_norm = true;
  Recorder<float> recorder;
  Pass<float> pass;
  pass.observer = &recorder;
  const auto llama = MakeModel<float>(config, {}, 1);
  const Batch batch = RandomText(2, 5, config.vocabulary, 19);
  llama->Forward(pass, batch);
  llama->Backward(pass);
  std::vector<std::string> points{"embedding",
                                  "blocks.0.attention.norm",
                                  "blocks.0.attention.qkv",
                                  "blocks.0.attention.query_norm",
                                  "blocks.0.attention.key_norm",
                                  "blocks.0.attention.core",
                                  "blocks.0.attention.out",
                                  "blocks.0.middle",
                                  "blocks.0.mlp.norm",
                                  "blocks.0.mlp.gate_up",
                                  "blocks.0.mlp.hidden",
                                  "blocks.0.mlp.down",
                                  "blocks.0",
                                  "final_norm",
                                  "head"};
  EXPECT_EQ(recorder.order[TensorRole::kActivation], points);
  std::reverse(points.begin(), points.end());
  EXPECT_EQ(recorder.order[TensorRole::kGradient], points);
}

TEST(LanguageModel, ProfileCoversEveryPartOfAStep) {
  const ModelConfig config = TinyLanguageModel(ModelKind::kGpt);
  const auto model = MakeModel<float>(config, {}, 1);
  StepProfile profile;
  Pass<float> pass;
  pass.profile = &profile;
  LossAndGradients(*model, pass, RandomText(2, 5, config.vocabulary, 20));
  for (const StepPhase part : {StepPhase::kProduct,
                               StepPhase::kAttention,
                               StepPhase::kNorm,
                               StepPhase::kActivation,
                               StepPhase::kEmbedding,
                               StepPhase::kResidual,
                               StepPhase::kLoss}) {
    EXPECT_GT(profile[part], 0) << ToString(part);
  }
}

}  // namespace
}  // namespace numsim
