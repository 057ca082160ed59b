// Which precision, number and state each linear layer of a model has.
#include "numsim/models/internal/linear_factory.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "numsim/models/model.h"
#include "numsim/random/distributions.h"
#include "tests/models/language_model_problem.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

TEST(LinearFactory, LayersTakeThePrecisionOfTheirName) {
  LinearPrecision precision;
  precision.all.kind = "switchback";
  precision.first_last_high = true;
  LinearOptions mx;
  mx.kind = "mx";
  precision.overrides = {{"*.mlp.*", mx}};
  ParameterList<float> parameters(1);
  LinearFactory<float> maker(parameters, precision);
  EXPECT_EQ(maker.Make("patches", {.in = 32, .out = 32, .edge = true}).recipe().kind, "standard");
  EXPECT_EQ(maker.Make("blocks.0.mlp.up", {.in = 32, .out = 32}).recipe().kind, "mx");
  EXPECT_EQ(maker.Make("blocks.0.attention.qkv", {.in = 32, .out = 32}).recipe().kind,
            "switchback");
  maker.CheckOverrides();
  EXPECT_EQ(maker.Names(),
            (std::vector<std::string>{"patches", "blocks.0.mlp.up", "blocks.0.attention.qkv"}));
}

TEST(LinearFactory, AddressesStayWhenMoreLayersAreMade) {
  ParameterList<float> parameters(1);
  LinearFactory<float> maker(parameters, {});
  const LinearLayer<float>& first = maker.Make("layer", {.in = 2, .out = 2});
  for (int i = 0; i < 100; ++i) maker.Make("more." + std::to_string(i), {.in = 2, .out = 2});
  EXPECT_EQ(first.name(), "layer");
}

TEST(LinearFactory, OverrideThatNamesNoLayerIsAnError) {
  LinearPrecision precision;
  precision.overrides = {{"*.qkv", {}}, {"blocks.*.gate", {}}};
  ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  config.layers = 1;
  EXPECT_EQ(ErrorOf([&] { MakeModel<float>(config, precision, 1); }),
            "linear.override 'blocks.*.gate' names no layer; there are: blocks.0.attention.qkv, "
            "blocks.0.attention.out, blocks.0.mlp.gate_up, blocks.0.mlp.down, head");
}

TEST(LinearFactory, CountsTwoOperationsAWeightAndRow) {
  ModelConfig config = TinyLanguageModel(ModelKind::kGpt);  // 12 wide, hidden 10, context 6
  config.layers = 2;
  const auto model = MakeModel<float>(config, {}, 1);
  const double block = 12 * 36 + 12 * 12 + 2 * 12 * 10;
  EXPECT_EQ(model->ForwardFlops(3), 2 * 3 * 6 * (2 * block + 12 * 11));
}

// Delayed scaling: layers with a state.
LinearPrecision Delayed() {
  LinearPrecision precision;
  precision.all.kind = "te-hybrid";
  precision.all.delayed = DelayedScalingOptions{};
  precision.first_last_high = true;
  return precision;
}

TEST(LinearFactory, TheLastBlocksOfAModelMayBeStandard) {
  ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  config.layers = 4;
  LinearPrecision precision;
  precision.all.kind = "switchback";
  precision.high_last = 0.3;
  const auto model = MakeModel<float>(config, precision, 1);
  const std::vector<std::string> names = model->LinearLayers();
  const std::vector<LinearOptions> options = model->LinearLayerPrecisions();
  size_t high = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = names[i].starts_with("blocks.2.") || names[i].starts_with("blocks.3.");
    EXPECT_EQ(options[i].kind, last ? "standard" : "switchback") << names[i];
    high += last ? 1 : 0;
  }
  EXPECT_EQ(2 * high, names.size() - 1);  // all but the head
}

TEST(LinearFactory, StatesContinueInAnotherModel) {
  const ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  const Batch batch = RandomText(2, 5, config.vocabulary, 31);
  const auto model = MakeModel<float>(config, Delayed(), 1);
  const auto copy = MakeModel<float>(config, Delayed(), 1);
  for (int i = 0; i < 2; ++i) {
    model->Forward({}, batch);
    model->Backward({});
  }
  const std::vector<NamedState> states = model->SaveState();
  ASSERT_EQ(states.size(), model->LinearLayers().size() - 1);  // not the head
  copy->RestoreState(states);
  const double loss = model->Forward({}, batch).sum;
  EXPECT_EQ(copy->Forward({}, batch).sum, loss);
  const auto fresh = MakeModel<float>(config, Delayed(), 1);
  EXPECT_NE(fresh->Forward({}, batch).sum, loss);
}

TEST(LinearFactory, StateOfAnotherModelIsAnError) {
  const ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  const auto model = MakeModel<float>(config, Delayed(), 1);
  std::vector<NamedState> states = model->SaveState();
  states[1].name = "blocks.9.attention.out";
  EXPECT_EQ(ErrorOf([&] { model->RestoreState(states); }),
            "state of 'blocks.9.attention.out', which is no linear layer of the model");
  EXPECT_TRUE(MakeModel<float>(config, {}, 1)->SaveState().empty());
}

LinearPrecision Stochastic() {
  LinearPrecision precision;
  precision.all.kind = "switchback";
  precision.all.gradient_rounding = Rounding{.mode = RoundingMode::kStochastic};
  return precision;
}

TEST(LinearFactory, RandomDrawsAreThoseOfSeedAndStep) {
  const ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  const auto model = MakeModel<float>(config, Stochastic(), 1);
  const Batch batch = RandomText(2, 5, config.vocabulary, 32);
  const auto gradient = [&](uint64_t seed, uint64_t step) {
    Pass<float> pass;
    pass.seed = seed;
    pass.step = step;
    model->Forward(pass, batch);
    model->Backward(pass);
    const auto values = model->parameters().Find("embedding.tokens")->gradient.View().Span();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> first = gradient(1, 1);
  EXPECT_NE(first, gradient(1, 2));
  EXPECT_NE(first, gradient(2, 1));
  EXPECT_EQ(first, gradient(1, 1));
}

TEST(LinearFactory, RandomDrawsOfLayersAreApart) {
  ParameterList<float> parameters(1);
  LinearFactory<float> maker(parameters, Stochastic());
  const auto gradient = [&](LinearLayer<float>& layer) {
    std::vector<float> x(8 * 32), g(8 * 32), y(8 * 32), dx(8 * 32);
    FillNormal({1, 1}, 0, x);
    FillNormal({1, 2}, 0, g);
    layer.Forward({}, {x.data(), 8, 32}, {y.data(), 8, 32});
    layer.Backward({}, {g.data(), 8, 32}, {dx.data(), 8, 32});
    return dx;
  };
  const LinearPlan plan{.in = 32, .out = 32, .weight = {0.5F, 0}};
  LinearLayer<float>& first = maker.Make("first", plan);
  LinearLayer<float>& second = maker.Make("second", plan);
  EXPECT_EQ(gradient(first), gradient(first));
  EXPECT_NE(gradient(first), gradient(second));
}

}  // namespace
}  // namespace numsim
