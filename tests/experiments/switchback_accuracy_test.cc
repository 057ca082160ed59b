// The experiment `switchback-accuracy`: variants, options, configurations, one training.
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
using ::testing::Not;
using ::testing::StartsWith;

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
  std::vector<std::string> texts;
  for (const Variant& variant : VariantsOf(SettingsWith({{"variants", variants}}))) {
    texts.push_back(variant.Text());
  }
  return texts;
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
  const std::string text = "switchback:e4m3:inf=none,nan=none,bias=9/e5m2";
  const auto variants = VariantsOf(SettingsWith({{"variants", text + ",switchback:int8"}}));
  ASSERT_EQ(variants.size(), 3u);
  EXPECT_EQ(variants[1].format, ParseFormat("e4m3:inf=none,nan=none,bias=9").name);
  EXPECT_NE(variants[1].format.find(','), std::string::npos) << variants[1].format;
  EXPECT_EQ(ParseVariant(variants[1].Text()), variants[1]);
  EXPECT_EQ(variants[1].gradient_format, "e5m2");
  EXPECT_EQ(Precision(variants[1]), "fp8");
  EXPECT_EQ(variants[2].Text(), "switchback:int8");
}

TEST(SwitchbackVariants, TextsReadBack) {
  const Experiment experiment = SwitchbackAccuracy();
  for (const Preset& preset : experiment.presets) {
    const Settings settings = MakeSettings(experiment, preset.name, 0, 1, {});
    for (const Variant& variant : VariantsOf(settings)) {
      EXPECT_EQ(ParseVariant(variant.Text()), variant) << variant.Text();
    }
  }
  EXPECT_EQ(ParseVariant("llm-int8+all").Text(), "llm-int8:int8+all");
  EXPECT_EQ(ParseVariant("switchback:e4m3fn/e5m2+all").Text(), "switchback:e4m3fn/e5m2+all");
  EXPECT_EQ(ParseVariant("standard+all"), kBaseline);  // nothing is quantised anyway
}

TEST(SwitchbackPresets, HaveWhatTheClaimsAreAbout) {
  const Experiment experiment = SwitchbackAccuracy();
  std::vector<std::string> names;
  for (const Preset& preset : experiment.presets) {
    names.push_back(preset.name);
    EXPECT_GE(preset.seeds, 3) << preset.name;
    const Settings settings = MakeSettings(experiment, preset.name, 0, preset.seeds, {});
    std::set<std::string> texts;
    for (const Variant& variant : VariantsOf(settings)) texts.insert(variant.Text());
    for (const char* const text : {"standard",
                                   "switchback:int8",
                                   "llm-int8:int8",
                                   "tensor-wise:int8",
                                   "switchback:e4m3fn/e5m2",
                                   "tensor-wise:e4m3fn/e5m2"}) {
      EXPECT_TRUE(texts.contains(text)) << preset.name << ": " << text;
    }
    if (preset.name == "quick") continue;
    for (const char* const text : {"switchback-m:int8",
                                   "switchback-q:int8",
                                   "switchback:bnb-e4m3/bnb-e5m2",
                                   "tensor-wise:bnb-e4m3/bnb-e5m2"}) {
      EXPECT_TRUE(texts.contains(text)) << preset.name << ": " << text;
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"quick", "small", "paper"}));
}

TEST(SwitchbackTrials, AreEveryTrainingWithEverySeed) {
  const Settings settings = SettingsWith(With(kTiny, "batches-llama", "2,3"), 2);
  const std::vector<Trial> trials = SwitchbackAccuracy().trials(settings);
  ASSERT_EQ(trials.size(), 3u * 3u * 2u);
  EXPECT_EQ(trials[0].label, "clip 1x32 batch=4 standard seed=0");
  EXPECT_EQ(trials[3].label, "clip 1x32 batch=4 switchback:int8+all seed=1");
  EXPECT_EQ(trials[17].label, "llama 1x32 batch=3 llm-int8:int8+all seed=1");
  EXPECT_GT(trials[17].cost, trials[6].cost);
  std::set<std::string> labels;
  for (const Trial& trial : trials) EXPECT_TRUE(labels.insert(trial.label).second) << trial.label;
}

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
      {"sizes-clip", "32"},
      {"sizes-clip", "1x32,1x32"},
      {"sizes-llama", "1x33"},  // a head of 33 cannot be rotated
      {"batches-clip", "0"},
      {"batches-clip", "4,200"},  // no batch of validation
      {"batches-llama", "2,4096"},
      {"batches-llama", "2,2"},
      {"patch", "7"},
      {"image", "15"},
      {"context", "8192"},
      {"variants", "switchback:int8+some"},
      {"variants", "+all"},
      {"captions", "/nowhere"},
      {"text", "/nowhere.txt"},
      {"shapes-size", "1"},
      {"text-size", "1"},
      {"steps", "9"},
      {"lr-clip", "0"},
      {"lr-llama", "x"},
      {"warmup", "11"},
      {"epsilon", "0"},
      {"beta2", "1"},
      {"final-lr", "2"},
      {"patch-dropout", "1"},
      {"weight-decay", "-1"},
      {"clip", "-1"},
      {"valid-batches", "0"},
      {"records", "11"},
      {"shadow-steps", "11"},
      {"shadow-seeds", "x"}};
  for (const auto& [option, value] : bad) {
    const std::string message = message_of(option, value);
    const bool is_path = value.starts_with("/");
    EXPECT_THAT(message, HasSubstr(is_path ? value : "--" + option)) << option << " " << value;
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(SwitchbackConfig, IsThePapersByDefault) {
  const TrainConfig clip = ConfigOf(SettingsWith({}), {ModelKind::kClip, {2, 64}, 8, kBaseline}, 0);
  EXPECT_EQ(clip.optimizer.kind, OptimizerKind::kStableAdamW);
  EXPECT_EQ(clip.optimizer.epsilon, 1e-6);
  EXPECT_EQ(clip.optimizer.beta1, 0.9);
  EXPECT_EQ(clip.optimizer.beta2, 0.99);
  EXPECT_EQ(clip.optimizer.clip_norm, 0);
  EXPECT_EQ(clip.schedule.final, 0);
  EXPECT_EQ(clip.model.patch_dropout, 0.5);
  EXPECT_EQ(clip.storage.activations.name, "bf16");
  EXPECT_TRUE(clip.linear.first_last_high);
}

TEST(SwitchbackConfig, TakesTheOptionsOfItsModel) {
  const Settings settings = SettingsWith({{"patch", "16"},
                                          {"image", "48"},
                                          {"context", "24"},
                                          {"lr-clip", "0.25"},
                                          {"lr-llama", "0.5"},
                                          {"steps", "70"},
                                          {"warmup", "7"},
                                          {"epsilon", "1e-5"},
                                          {"beta2", "0.9"},
                                          {"final-lr", "0.25"},
                                          {"optimizer", "adamw"},
                                          {"patch-dropout", "0.75"},
                                          {"storage", "fp16"},
                                          {"weight-decay", "0.3"},
                                          {"clip", "2"},
                                          {"valid-batches", "3"},
                                          {"shapes-size", "777"},
                                          {"text", "some.txt"}});
  const Variant variant = ParseVariant("tensor-wise:e4m3fn");
  const TrainConfig clip = ConfigOf(settings, {ModelKind::kClip, {3, 64}, 5, variant}, 42);
  EXPECT_EQ(clip.model.kind, ModelKind::kClip);
  EXPECT_EQ(clip.model.layers, 3u);
  EXPECT_EQ(clip.model.width, 64u);
  EXPECT_EQ(clip.model.patch, 16u);
  EXPECT_EQ(clip.data.kind, DataKind::kGeneratedShapes);
  EXPECT_EQ(clip.data.size, 777u);
  EXPECT_EQ(clip.data.image, 48u);
  EXPECT_EQ(clip.train.batch, 5u);
  EXPECT_EQ(clip.train.steps, 70u);
  EXPECT_EQ(clip.train.seed, 42u);
  EXPECT_EQ(clip.train.valid_batches, 3u);
  EXPECT_EQ(clip.schedule.peak, 0.25);
  EXPECT_EQ(clip.schedule.warmup, 7u);
  EXPECT_EQ(clip.optimizer.epsilon, 1e-5);
  EXPECT_EQ(clip.optimizer.beta2, 0.9);
  EXPECT_EQ(clip.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(clip.schedule.final, 0.25);
  EXPECT_EQ(clip.model.patch_dropout, 0.75);
  EXPECT_EQ(clip.storage.activations.name, "fp16");
  EXPECT_EQ(clip.storage.gradients.name, "fp16");
  EXPECT_EQ(clip.optimizer.weight_decay, 0.3);
  EXPECT_EQ(clip.optimizer.clip_norm, 2);
  EXPECT_EQ(clip.linear.all.kind, "tensor-wise");
  EXPECT_EQ(clip.linear.all.format, "e4m3fn");
  EXPECT_EQ(clip.linear.all.gradient_format, "e5m2");
  EXPECT_EQ(clip.linear.all.high_precision, "bf16");
  EXPECT_TRUE(clip.linear.first_last_high);
  const TrainConfig llama = ConfigOf(settings, {ModelKind::kLlama, {2, 32}, 6, kBaseline}, 0);
  EXPECT_EQ(llama.model.context, 24u);
  EXPECT_EQ(llama.schedule.peak, 0.5);
  EXPECT_EQ(llama.data.kind, DataKind::kText);
  EXPECT_EQ(llama.data.path, "some.txt");
  EXPECT_EQ(llama.linear.all.kind, "standard");
  EXPECT_FALSE(ConfigOf(settings, {ModelKind::kLlama, {2, 32}, 6, ParseVariant("llm-int8+all")}, 0)
                   .linear.first_last_high);
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
std::unique_ptr<Trainer> Trained(ModelKind model, const Variant& variant) {
  const Settings settings = SettingsWith(kTiny);
  const TrainConfig config = ConfigOf(settings, {model, {1, 32}, 4, variant}, 1);
  auto trainer = std::make_unique<Trainer>(config, OpenData(config.data));
  for (int i = 0; i < 3; ++i) trainer->Step();
  return trainer;
}

// Every gradient but those of linear weights is made by forward products and input gradients alone.
TEST(SwitchbackConfig, ExactWeightGradientsChangeNothingElse) {
  struct Case {
    ModelKind model;
    const char* variant;
  };
  for (const Case& c : {Case{ModelKind::kLlama, "standard"},
                        Case{ModelKind::kLlama, "switchback:int8+all"},
                        Case{ModelKind::kLlama, "switchback-m:int8"},
                        Case{ModelKind::kLlama, "switchback-q:e4m3fn+all"},
                        Case{ModelKind::kLlama, "tensor-wise:bnb-e4m3/bnb-e5m2+all"},
                        Case{ModelKind::kLlama, "te-hybrid+all"},
                        Case{ModelKind::kLlama, "mx+all"},
                        Case{ModelKind::kClip, "switchback-m:int8+all"},
                        Case{ModelKind::kClip, "llm-int8:int8"}}) {
    const auto trainer = Trained(c.model, ParseVariant(c.variant));
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
  const Rows rows = Measure(SettingsWith(overrides), trial);
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
  EXPECT_EQ(curves.Text(0, "format"), "int8");
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

TEST(SwitchbackRun, IsTheSameOnAnyNumberOfThreads) {
  const int before = ThreadCount();
  const TemporaryDirectory directory;
  std::map<std::string, std::string> files[2];
  for (const int threads : {1, 3}) {
    SetThreadCount(threads);
    const auto out = directory.Path() / std::to_string(threads);
    RunWithoutFigures(SwitchbackAccuracy(), SettingsWith(kTiny, 2), out);
    for (const char* const name :
         {"curves.csv", "gradients.csv", "final.csv", "gaps.csv", "gradient_errors.csv"}) {
      files[threads / 2][name] = Bytes(out / name);
      EXPECT_FALSE(files[threads / 2][name].empty()) << name;
    }
    files[threads / 2]["summary"] = Bytes(out / "summary.txt");
  }
  SetThreadCount(before);
  EXPECT_EQ(files[0], files[1]);
}

TEST(SwitchbackRun, HasTheTrainingsOfOneVariantAfterTheOther) {
  const TemporaryDirectory directory;
  const auto out = directory.Path() / "out";
  RunWithoutFigures(SwitchbackAccuracy(), SettingsWith(kTiny, 2), out);
  EXPECT_THAT(Bytes(out / "final.csv"),
              StartsWith("model,size,tokens,kind,format,gradient_format,layers,seed,parameters,"
                         "status,steps,start_loss,train_loss,valid_loss,zero_shot\n"));
  EXPECT_THAT(Bytes(out / "gradients.csv"),
              StartsWith("model,size,tokens,kind,format,gradient_format,layers,seed,step,layer,"
                         "inner,error,own_error,cosine\n"));
  const Table table = ReadCsv(out / "final.csv");
  std::vector<std::string> rows, expected;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    rows.push_back(CellsOf(
        table,
        r,
        {"model", "size", "tokens", "kind", "format", "gradient_format", "layers", "seed"}));
  }
  for (const std::string model : {"clip 1x32 20 ", "llama 1x32 32 "}) {
    for (const std::string variant :
         {"standard bf16 bf16 blocks", "switchback int8 int8 all", "llm-int8 int8 int8 all"}) {
      for (const char* const seed : {" 0", " 1"}) expected.push_back(model + variant + seed);
    }
  }
  EXPECT_EQ(rows, expected);
}

TEST(SwitchbackAccuracy, StopsChangeNothing) {
  const Settings settings = SettingsWith(kTiny);
  ExpectStopsChangeNothing(SwitchbackAccuracy(), settings, Trials(settings).front());
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
