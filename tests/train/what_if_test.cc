// Trainings with what-if telemetry: which rows there are, the history of delayed scales, and that the
// training does not notice.
#include "numsim/train/internal/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

void AddRecipes(TrainConfig& config, const std::vector<std::string>& recipes, uint64_t every = 5) {
  config.what_if.every = every;
  for (const std::string& recipe : recipes) {
    config.what_if.recipes.push_back(ParseWhatIfRecipe(recipe));
  }
}

// Layer, tensor and recipe of each row of a step.
using Place = std::tuple<std::string, std::string, std::string>;

std::multiset<Place> PlacesOf(const Table& table, const std::string& step) {
  std::multiset<Place> places;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    if (table.Text(row, "step") != step) continue;
    places.emplace(table.Text(row, "layer"), table.Text(row, "tensor"), table.Text(row, "recipe"));
  }
  return places;
}

TrainConfig OneStepOfClip() {
  TrainConfig config = TinyConfig();
  config.model.kind = ModelKind::kClip;
  config.model.patch = 8;
  config.data.kind = DataKind::kGeneratedShapes;
  config.data.size = 64;
  config.data.image = 16;
  config.train.steps = 1;
  return config;
}

TEST(WhatIf, EachTensorOfEachLayerHasARowPerRecipe) {
  for (TrainConfig config : {TinyConfig(), OneStepOfClip()}) {
    AddRecipes(config, {"e4m3fn tensor", "e5m2 delayed"});
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer);
    std::multiset<Place> expected;
    for (const std::string& layer : trainer.model().LinearLayers()) {
      for (const char* const tensor : {"X", "W", "G"}) {
        for (const char* const recipe : {"e4m3fn tensor", "e5m2 delayed"}) {
          expected.emplace(layer, tensor, recipe);
        }
      }
    }
    const Table& table = trainer.telemetry().Of("what_if");
    const std::set<uint64_t> steps =
        config.train.steps == 1 ? std::set<uint64_t>{0} : std::set<uint64_t>{0, 5, 10};
    EXPECT_EQ(table.rows.size(), steps.size() * expected.size());
    for (const uint64_t step : steps) EXPECT_EQ(PlacesOf(table, FormatCell(step)), expected);
  }
}

TEST(WhatIf, PatternsSelectLayers) {
  TrainConfig config = TinyConfig();
  AddRecipes(config, {"e4m3fn tensor"});
  config.what_if.layers = {"head", "*.mlp.*"};
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  std::set<std::string> layers;
  const Table& table = trainer.telemetry().Of("what_if");
  for (size_t row = 0; row < table.rows.size(); ++row) layers.insert(table.Text(row, "layer"));
  EXPECT_EQ(layers, (std::set<std::string>{"blocks.0.mlp.gate_up", "blocks.0.mlp.down", "head"}));
  config.what_if.layers = {"*", "heads"};
  const std::string error = ErrorOf([&] { Trainer(config, OpenShared(config.data)); });
  EXPECT_THAT(error, HasSubstr("what_if.layers: 'heads' names no layer; there are: blocks.0."));
  EXPECT_THAT(error, HasSubstr("did you mean head?"));
}

TEST(WhatIf, OnlyGradientsHaveARatioToTheirNoise) {
  TrainConfig config = TinyConfig();
  AddRecipes(config, {"e2m1fn block:16"});
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  const Table& table = trainer.telemetry().Of("what_if");
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const double ratio = table.Number(row, "gradient_to_noise");
    if (table.Text(row, "tensor") != "G") {
      EXPECT_TRUE(std::isnan(ratio));
      continue;
    }
    EXPECT_NEAR(20 * std::log10(ratio), table.Number(row, "sqnr_db"), 1e-9);
  }
}

// The history in the text of DelayedScale, by hand: of two maxima, e4m3fn with the largest value 448.
TEST(WhatIf, DelayedScalesFollowAHandComputedSequence) {
  TrainConfig config = TinyConfig();
  AddRecipes(config, {"e4m3fn delayed history:2", "e4m3fn delayed history:2 most-recent margin:1"});
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  FitToData(config, data->shape());
  const auto model = MakeModel<float>(config.model, config.linear, 0);
  const std::vector<float> absmax = {2, 8, 1, 1, 0, 4};
  // The scale in use at each step: that of the maxima before it; the first is 1. A maximum of zero
  // advances nothing.
  const std::vector<double> largest = {1, 2 / 448.0, 8 / 448.0, 8 / 448.0, 1 / 448.0, 1 / 448.0};
  const std::vector<double> recent = {1, 4 / 448.0, 16 / 448.0, 2 / 448.0, 2 / 448.0, 2 / 448.0};
  for (const uint64_t every : {1, 5}) {  // unmeasured steps are part of the history
    PassObserver<float> nothing;
    WhatIfObserver observer(config.what_if, 0, *model, nothing);
    Telemetry telemetry;
    for (uint64_t step = 0; step < absmax.size(); ++step) {
      observer.Begin(step, step, step % every == 0 ? &telemetry : nullptr, nullptr);
      std::vector<float> g = {absmax[step], -0.25f * absmax[step]};
      observer.Tensor("head", TensorRole::kActivation, {g.data(), 1, 2});    // not a gradient
      observer.Tensor("blocks.0", TensorRole::kGradient, {g.data(), 1, 2});  // not of a layer
      observer.Tensor("head", TensorRole::kGradient, {g.data(), 1, 2});
    }
    const Table& table = telemetry.Of("what_if");
    ASSERT_EQ(table.rows.size(), every == 1 ? 12u : 4u);
    for (size_t row = 0; row < table.rows.size(); ++row) {
      const auto step = static_cast<size_t>(table.Number(row, "step"));
      const double expected = (row % 2 == 0 ? largest : recent)[step];
      const bool is_zero = absmax[step] == 0;  // without elements to scale
      EXPECT_NEAR(table.Number(row, "scale_max"), is_zero ? 1 : expected, 1e-7 * expected)
          << "row " << row << ", step " << step;
    }
  }
}

// A training that quantises with delayed scales measures its operands itself, in quantised.csv.
TEST(WhatIf, IsWhatATrainingUnderTheRecipeMeasures) {
  for (const size_t accumulate : {1, 2}) {
    TrainConfig config = StatefulConfig();
    config.linear.all.gradient_rounding = {};
    config.train.accumulate = accumulate;
    config.telemetry.tensors_every = 3;
    AddRecipes(config, {"e4m3fn delayed history:4", "e5m2 delayed history:4"}, 3);
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer);
    const Table& own = trainer.telemetry().Of("quantised");
    const Table& what_if = trainer.telemetry().Of("what_if");
    std::map<std::tuple<std::string, std::string, std::string>, size_t> rows;
    for (size_t row = 0; row < what_if.rows.size(); ++row) {
      const bool gradient = what_if.Text(row, "tensor") == "G";
      if (gradient != what_if.Text(row, "recipe").starts_with("e5m2")) continue;
      rows[{what_if.Text(row, "step"), what_if.Text(row, "layer"), what_if.Text(row, "tensor")}] =
          row;
    }
    EXPECT_EQ(rows.size(), own.rows.size());
    for (size_t row = 0; row < own.rows.size(); ++row) {
      const std::string tensor(1, own.Text(row, "operand").back());
      const auto found = rows.find({own.Text(row, "step"), own.Text(row, "layer"), tensor});
      ASSERT_NE(found, rows.end()) << own.Text(row, "operand");
      for (const char* const column : {"underflow", "mse", "sqnr_db"}) {
        EXPECT_EQ(what_if.Text(found->second, column), own.Text(row, column))
            << own.Text(row, "layer") << " " << own.Text(row, "operand") << " " << column;
      }
    }
  }
}

TEST(WhatIf, DoesNotChangeABitOfTheTraining) {
  for (const bool stateful : {false, true}) {
    for (const size_t accumulate : {1, 2}) {
      TrainConfig plain = stateful ? StatefulConfig() : TinyConfig();
      plain.train.accumulate = accumulate;
      TrainConfig measured = plain;
      AddRecipes(measured, {"e4m3fn delayed", "e2m1fn block:16 sr", "e5m2 column"}, 2);
      const auto data = OpenShared(plain.data);
      Trainer a(plain, data), b(measured, data);
      StepUntil(a);
      StepUntil(b);
      EXPECT_FALSE(b.telemetry().Of("what_if").rows.empty());
      for (const char* const table : {"train", "valid", "tensors", "quantised", "optimizer"}) {
        EXPECT_EQ(ToCsv(a.telemetry().Of(table)), ToCsv(b.telemetry().Of(table))) << table;
      }
      auto left = TensorBytes(a.Save()), right = TensorBytes(b.Save());
      const size_t own = std::erase_if(
          right, [](const auto& entry) { return entry.first.starts_with("what_if/"); });
      EXPECT_EQ(own, 3 * b.model().LinearLayers().size());
      EXPECT_EQ(left, right);
    }
  }
}

TEST(WhatIf, RestoredItContinuesTheHistory) {
  TrainConfig config = StatefulConfig();
  AddRecipes(config, {"e4m3fn delayed history:3", "e5m2 delayed most-recent", "e2m1fn row sr"}, 1);
  const auto data = OpenShared(config.data);
  Trainer whole(config, data), first(config, data), second(config, data);
  StepUntil(whole, 5);
  StepUntil(first, 5);
  second.Restore(first.Save());
  whole.telemetry().Clear();
  StepUntil(whole);
  StepUntil(second);
  EXPECT_EQ(TelemetryText(whole.telemetry()), TelemetryText(second.telemetry()));
  EXPECT_EQ(TensorBytes(whole.Save()), TensorBytes(second.Save()));
}

TEST(WhatIf, RefusesStatesThatDoNotFit) {
  TrainConfig config = TinyConfig();
  AddRecipes(config, {"e4m3fn delayed history:3"});
  Trainer trainer(config, OpenShared(config.data));
  const TrainState good = trainer.Save();
  const std::string name = "what_if/head.G/e4m3fn delayed history:3";
  TrainState missing = good, surplus = good, bad = good;
  std::erase_if(missing.tensors, [&](const auto& entry) { return entry.first == name; });
  for (auto& [tensor, array] : bad.tensors) {
    if (tensor != name) continue;
    surplus.tensors.emplace_back("what_if/none.G/e4m3fn delayed history:3", array);
    array.bytes.resize(8);
    array.shape = {2};
  }
  EXPECT_THAT(ErrorOf([&] { trainer.Restore(missing); }), HasSubstr("'head.G/e4m3fn delayed"));
  EXPECT_THAT(ErrorOf([&] { trainer.Restore(surplus); }), HasSubstr("'none.G/e4m3fn delayed"));
  EXPECT_NE(ErrorOf([&] { trainer.Restore(bad); }), kNoError);
  trainer.Restore(good);
}

}  // namespace
}  // namespace numsim
