// The experiment `switchback-accuracy`: variants, arms, weight gradients, one training.
#include "experiments/switchback_accuracy/switchback_accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/runner/settings.h"
#include "numsim/analysis/step_replay.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

using ::testing::HasSubstr;

using Overrides = std::map<std::string, std::string>;

// Models that train in milliseconds.
const Overrides kTiny = TinyRun("switchback-accuracy");

Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}
Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(SwitchbackAccuracy(), "quick", 0, seeds, overrides);
}

std::vector<std::string> VariantTexts(const std::string& variants) {
  return study::ValuesOf(SwitchbackAccuracyStudy().axes[kVariant],
                         SettingsWith({{"variants", variants}}));
}

TrainConfig ConfigOf(const Settings& settings, const study::Arm& arm, uint64_t seed = 0) {
  return study::ConfigOf(SwitchbackAccuracyStudy(), settings, arm, seed);
}

TEST(SwitchbackVariants, BeginWithStandardAndAreThereOnce) {
  EXPECT_EQ(VariantTexts("llm-int8:int8,standard,switchback,llm-int8,switchback:int8/int8"),
            (std::vector<std::string>{"standard", "llm-int8:int8", "switchback:int8"}));
  EXPECT_EQ(VariantTexts("standard"), (std::vector<std::string>{"standard"}));
}

TEST(SwitchbackVariants, ShowTheirGradientFormatUnlessItIsTheUsualOne) {
  EXPECT_EQ(
      VariantTexts("tensor-wise:e4m3fn,tensor-wise:e4m3fn/"
                   "e4m3fn,switchback:e4m3fn,switchback:e4m3fn/e5m2,tensor-wise:bnb-e4m3/bnb-e5m2"),
      (std::vector<std::string>{"standard",
                                "tensor-wise:e4m3fn/e5m2",
                                "tensor-wise:e4m3fn/e4m3fn",
                                "switchback:e4m3fn",
                                "switchback:e4m3fn/e5m2",
                                "tensor-wise:bnb-e4m3/bnb-e5m2"}));
}

TEST(SwitchbackVariants, MayHaveCustomFormatsWithCommas) {
  const auto texts = VariantTexts("switchback:e4m3:inf=none,nan=none,bias=9/e5m2,switchback:int8");
  ASSERT_EQ(texts.size(), 3u);
  const Variant variant = ParseVariant(texts[1]);
  EXPECT_EQ(variant.format, ParseFormat("e4m3:inf=none,nan=none,bias=9").name);
  EXPECT_NE(variant.format.find(','), std::string::npos) << variant.format;
  EXPECT_EQ(variant.Text(), texts[1]);
  EXPECT_EQ(variant.gradient_format, "e5m2");
  EXPECT_EQ(Precision(variant), "fp8");
  EXPECT_EQ(texts[2], "switchback:int8");
}

// From the configuration of a trial, from its text, and from the rows that are written.
TEST(SwitchbackVariants, ReadBack) {
  for (const char* const text : {"standard",
                                 "switchback:int8",
                                 "llm-int8:int8+all",
                                 "switchback:e4m3fn/e5m2+all",
                                 "tensor-wise:e4m3fn/e4m3fn",
                                 "tensor-wise:bnb-e4m3/bnb-e5m2",
                                 "mx:e4m3fn"}) {
    const Variant variant = ParseVariant(text);
    EXPECT_EQ(variant.Text(), text);
    EXPECT_EQ(VariantOf(ConfigOf(SettingsWith({}), {"llama", "2x64", "4", text})), variant) << text;
  }
  EXPECT_EQ(ParseVariant("llm-int8+all").Text(), "llm-int8:int8+all");
  EXPECT_EQ(ParseVariant("standard+all"), kBaseline);  // nothing is quantised anyway
}

TEST(SwitchbackTrials, AreEveryTrainingWithEverySeed) {
  const Settings settings = SettingsWith(With(kTiny, "batches-llama", "2,3"), 2);
  const std::vector<Trial> trials = SwitchbackAccuracy().trials(settings);
  ASSERT_EQ(trials.size(), 3u * 3u * 2u);
  EXPECT_EQ(trials[0].label, "clip 1x32 batch=4 standard seed=0");
  EXPECT_EQ(trials[3].label, "clip 1x32 batch=4 switchback:int8+all seed=1");
  EXPECT_EQ(trials[17].label, "llama 1x32 batch=3 llm-int8:int8+all seed=1");
  EXPECT_GT(trials[17].cost, trials[6].cost);
}

// Of an option for each model, that of the model; the options of both are checked.
TEST(SwitchbackTrials, NameBadOptions) {
  const auto message_of = [](const std::string& option, const std::string& value) {
    const Overrides overrides = With(kTiny, option, value);
    return ErrorOf([&] { SwitchbackAccuracy().trials(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message_of("steps", "10"), "no error");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"models", "gpt"},
      {"models", "clip,clip"},
      {"models", ""},
      {"variants", ""},
      {"variants", "switchback:"},
      {"variants", "switchback:int8/"},
      {"variants", "switchback:e9m9"},
      {"variants", "standard:bf16"},
      {"variants", "switchforth:int8"},
      {"variants", "switchback:int8,,llm-int8:int8"},
      {"variants", "switchback:int8+some"},
      {"variants", "+all"},
      {"sizes-clip", "32"},
      {"sizes-clip", "1x32,1x32"},
      {"sizes-llama", "1x33"},  // a head of 33 cannot be rotated
      {"batches-clip", "0"},
      {"batches-clip", "4,200"},  // no batch of validation
      {"batches-llama", "2,4096"},
      {"batches-llama", "2,2"},
      {"shapes-size", "1"},
      {"captions", "/nowhere"},
      {"text", "/nowhere.txt"},
      {"lr-clip", "0"},
      {"lr-llama", "x"},
      {"clip", "-1"},
      {"shadow-steps", "11"},
      {"shadow-seeds", "x"}};
  for (const auto& [option, value] : bad) {
    const std::string message = message_of(option, value);
    const bool is_path = value.starts_with("/");
    EXPECT_THAT(message, HasSubstr(is_path ? value : "--" + option)) << option << " " << value;
  }
}

TEST(SwitchbackConfig, TakesTheOptionsOfItsModel) {
  const Settings settings = SettingsWith({{"image", "48"},
                                          {"lr-clip", "0.25"},
                                          {"lr-llama", "0.5"},
                                          {"patch-dropout", "0.75"},
                                          {"clip", "2"},
                                          {"shapes-size", "777"},
                                          {"text", "/some.txt"}});
  const TrainConfig clip = ConfigOf(settings, {"clip", "3x64", "5", "tensor-wise:e4m3fn"}, 42);
  EXPECT_EQ(clip.model.kind, ModelKind::kClip);
  EXPECT_EQ(clip.model.layers, 3u);
  EXPECT_EQ(clip.model.width, 64u);
  EXPECT_EQ(clip.model.heads, 2u);
  EXPECT_EQ(clip.data.kind, DataKind::kGeneratedShapes);
  EXPECT_EQ(clip.data.size, 777u);
  EXPECT_EQ(clip.data.image, 48u);
  EXPECT_EQ(clip.train.batch, 5u);
  EXPECT_EQ(clip.train.seed, 42u);
  EXPECT_EQ(clip.schedule.peak, 0.25);
  EXPECT_EQ(clip.model.patch_dropout, 0.75);
  EXPECT_EQ(clip.optimizer.clip_norm, 2);
  EXPECT_EQ(clip.linear.all.kind, "tensor-wise");
  EXPECT_EQ(clip.linear.all.format, "e4m3fn");
  EXPECT_EQ(clip.linear.all.gradient_format, "e5m2");
  EXPECT_EQ(clip.linear.all.high_precision, "bf16");
  EXPECT_TRUE(clip.linear.first_last_high);
  const TrainConfig llama = ConfigOf(settings, {"llama", "2x32", "6", "llm-int8:int8+all"});
  EXPECT_EQ(llama.schedule.peak, 0.5);
  EXPECT_EQ(llama.model.patch_dropout, 0);
  EXPECT_EQ(llama.data.kind, DataKind::kText);
  EXPECT_EQ(llama.data.path, "/some.txt");
  EXPECT_FALSE(llama.linear.first_last_high);
}

// 12 steps after a warm-up of 4.
TEST(SwitchbackConfig, ShadowStepsAreSpreadOverTheStepsAfterTheWarmUp) {
  const auto steps_of = [](const std::string& count) {
    const Settings settings =
        SettingsWith({{"steps", "16"}, {"warmup", "4"}, {"shadow-steps", count}});
    std::vector<uint64_t> steps;
    for (uint64_t step = 0; step < 16; ++step) {
      if (IsShadowStep(settings, step)) steps.push_back(step);
    }
    return steps;
  };
  EXPECT_EQ(steps_of("0"), std::vector<uint64_t>{});
  EXPECT_EQ(steps_of("1"), std::vector<uint64_t>{4});
  EXPECT_EQ(steps_of("3"), (std::vector<uint64_t>{4, 8, 12}));
}

TEST(SwitchbackConfig, InnerDimensionsAreRowsOfTheLayers) {
  TrainConfig config;
  config.train.batch = 10;
  config.model.context = 7;
  EXPECT_EQ(Tokens(config), 70u);
  EXPECT_EQ(InnerDimension(config, "head"), 70u);
  config.model.kind = ModelKind::kClip;
  config.model.image = 32;
  config.model.patch = 8;
  EXPECT_EQ(Tokens(config), 170u);
  EXPECT_EQ(InnerDimension(config, "image.blocks.1.mlp.down"), 170u);
  EXPECT_EQ(InnerDimension(config, "image.patches"), 160u);
  EXPECT_EQ(InnerDimension(config, "text.blocks.0.mlp.up"), 70u);
  EXPECT_EQ(InnerDimension(config, "image.projection"), 10u);
  EXPECT_EQ(InnerDimension(config, "text.projection"), 10u);
}

// A trainer after a few steps.
std::unique_ptr<Trainer> Trained(const std::string& model, const std::string& variant) {
  const TrainConfig config = ConfigOf(SettingsWith(kTiny), {model, "1x32", "4", variant}, 1);
  auto trainer = std::make_unique<Trainer>(config, OpenData(config.data));
  for (int i = 0; i < 3; ++i) trainer->Step();
  return trainer;
}

// Every gradient but those of linear weights is made by forward products and input gradients alone.
TEST(SwitchbackConfig, ExactWeightGradientsChangeNothingElse) {
  struct Case {
    const char *model, *variant;
  };
  for (const Case& c : {Case{"llama", "standard"},
                        Case{"llama", "switchback:int8+all"},
                        Case{"llama", "switchback-m:int8"},
                        Case{"llama", "switchback-q:e4m3fn+all"},
                        Case{"llama", "tensor-wise:bnb-e4m3/bnb-e5m2+all"},
                        Case{"llama", "te-hybrid+all"},
                        Case{"llama", "mx+all"},
                        Case{"clip", "switchback-m:int8+all"},
                        Case{"clip", "llm-int8:int8"}}) {
    const auto trainer = Trained(c.model, c.variant);
    const StepReplay replay(*trainer);
    const ReplayPrecision own = PrecisionOf(trainer->config());
    ReplayPrecision exact = own;
    exact.linear = WithExactWeightGradient(own.linear);
    const StepGradients<float> a = replay.Run<float>(own), b = replay.Run<float>(exact);
    EXPECT_EQ(a.loss.sum, b.loss.sum) << c.variant;
    for (size_t i = 0; i < a.gradients.size(); ++i) {
      const NamedGradient<float>& gradient = a.gradients[i];
      const bool equal = gradient.values == b.gradients[i].values;
      EXPECT_EQ(equal, gradient.role != ParameterRole::kMatrix)
          << c.variant << " " << gradient.name;
    }
  }
}

// The tables of one training.
Tables Trained(const std::string& model, const std::string& variant, const Overrides& overrides) {
  const Trial trial{
      .label = "",
      .seed = 0,
      .parameters = {{"model", model}, {"size", "1x32"}, {"batch", "4"}, {"variant", variant}}};
  const Rows rows = SwitchbackAccuracy().run(SettingsWith(overrides), trial);
  Tables tables;
  for (const TableSpec& spec : SwitchbackAccuracy().tables) {
    if (spec.derived) continue;
    Table& table = tables[spec.name];
    for (const Column& column : spec.columns) table.columns.push_back(column.name);
    if (rows.contains(spec.name)) table.rows = rows.at(spec.name);
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << spec.name;
  }
  return tables;
}

TEST(SwitchbackTraining, RecordsCurvesAndWhatCameOut) {
  const Tables tables = Trained("clip", "switchback:int8", kTiny);
  const Table& curves = tables.at("curves");
  ASSERT_EQ(curves.rows.size(), 3u);
  EXPECT_EQ(curves.Number(1, "step"), 5);
  EXPECT_EQ(curves.Number(2, "step"), 10);
  EXPECT_EQ(curves.Text(0, "tokens"), "20");  // 4 images of 4 patches and a class token
  EXPECT_EQ(curves.Text(0, "kind"), "switchback");
  EXPECT_EQ(curves.Text(0, "format"), "int8");
  EXPECT_EQ(curves.Text(0, "gradient_format"), "int8");
  EXPECT_EQ(curves.Text(0, "layers"), "blocks");
  const Table& final_table = tables.at("final");
  ASSERT_EQ(final_table.rows.size(), 1u);
  EXPECT_EQ(final_table.Number(0, "start_loss"), curves.Number(0, "loss"));
  EXPECT_EQ(final_table.Text(0, "status"), "finished");
  EXPECT_TRUE(std::isfinite(final_table.Number(0, "valid_loss")));
  EXPECT_GE(final_table.Number(0, "zero_shot"), 0);
  EXPECT_LE(final_table.Number(0, "zero_shot"), 1);
  EXPECT_GT(final_table.Number(0, "parameters"), 10000);
}

// Activations that are stored in bf16 lose nothing as operands in bf16.
TEST(SwitchbackTraining, WithStorageInBf16TheWeightGradientHasNoErrorOfItsOwn) {
  const Tables tables = Trained("llama", "switchback:int8+all", With(kTiny, "storage", "bf16"));
  for (const double error : Frame(tables.at("gradients")).Numbers("own_error")) {
    EXPECT_EQ(error, 0);
  }
}

// llm-int8 rounds the operands of the weight gradient to 8 bits, SwitchBack to bf16.
TEST(SwitchbackTraining, OwnErrorIsThatOfTheWeightGradientsProduct) {
  const auto own_errors = [](const std::string& variant) {
    const Tables tables = Trained("llama", variant, kTiny);
    const Table& gradients = tables.at("gradients");
    EXPECT_EQ(gradients.rows.size(), 2u * 5u);  // steps 2 and 6; four layers of the block, head
    std::vector<double> errors;
    for (size_t r = 0; r < gradients.rows.size(); ++r) {
      EXPECT_EQ(gradients.Text(r, "inner"), "64");
      EXPECT_GT(gradients.Number(r, "error"), 0);
      EXPECT_GT(gradients.Number(r, "cosine"), variant == "standard" ? 0.9999 : 0.1);
      errors.push_back(gradients.Number(r, "own_error"));
    }
    return errors;
  };
  const std::vector<double> switchback = own_errors("switchback:int8+all");
  const std::vector<double> standard = own_errors("standard");
  const std::vector<double> llm = own_errors("llm-int8:int8+all");
  for (size_t i = 0; i < switchback.size(); ++i) {
    EXPECT_GT(switchback[i], 0);
    EXPECT_LT(switchback[i], 0.004);  // half a unit of bf16's 8 bits, twice
    EXPECT_LT(standard[i], 0.004);
    EXPECT_GT(llm[i], 2 * switchback[i]);
  }
}

TEST(SwitchbackTraining, ShadowsAreThereForTheFirstSeedsAlone) {
  EXPECT_TRUE(
      Trained("llama", "standard", With(kTiny, "shadow-seeds", "0")).at("gradients").rows.empty());
  EXPECT_TRUE(
      Trained("llama", "standard", With(kTiny, "shadow-steps", "0")).at("gradients").rows.empty());
}

TEST(SwitchbackTraining, DivergenceIsARowAndNotAnError) {
  const Tables tables =
      Trained("llama", "standard", With(With(kTiny, "lr-llama", "100"), "clip", "0"));
  EXPECT_EQ(tables.at("final").Text(0, "status"), "diverged");
  EXPECT_EQ(tables.at("final").Text(0, "valid_loss"), "inf");
  EXPECT_EQ(tables.at("final").Text(0, "zero_shot"), "nan");
}

TEST(SwitchbackAccuracy, StopsChangeNothing) {
  const Settings settings = SettingsWith(kTiny);
  const Experiment experiment = SwitchbackAccuracy();
  ExpectStopsChangeNothing(experiment, settings, experiment.trials(settings).front());
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
