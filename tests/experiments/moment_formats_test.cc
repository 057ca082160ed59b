// The experiment `moment-formats`: its pairs, its options, the training that it asks for.
#include "experiments/moment_formats/moment_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "tests/experiments/moment_formats_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::moment_formats {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Texts of the pairs of a grid alone.
std::vector<std::string> PairTexts(const Overrides& overrides) {
  std::vector<std::string> texts;
  for (const MomentPair& pair : PairsOf(SettingsWith(overrides))) texts.push_back(pair.Text());
  return texts;
}

TEST(MomentPairs, BeginWithTheBaselineThenTheGridThenSingleOnes) {
  EXPECT_EQ(PairTexts({{"m", "e5m2,bf16"},
                       {"v", "bf16,e5m2"},
                       {"scalings", "none,block:64"},
                       {"pairs", "fp16/e4m3@tensor+sr"}}),
            (std::vector<std::string>{"fp32 / fp32",
                                      "e5m2@none / bf16",
                                      "bf16 / bf16",
                                      "e5m2@none / e5m2@none",
                                      "bf16 / e5m2@none",
                                      "e5m2@block:64 / bf16@block:64",
                                      "bf16@block:64 / bf16@block:64",
                                      "e5m2@block:64 / e5m2@block:64",
                                      "bf16@block:64 / e5m2@block:64",
                                      "fp16 / e4m3+sr"}));
}

// tensor is the default of FP8, none that of bf16, blocks of 256 that of the dynamic map.
TEST(MomentPairs, AreThereOnceHoweverTheyAreWritten) {
  EXPECT_EQ(PairTexts({{"m", "fp32,e5m2,e5m2"},
                       {"v", "fp32"},
                       {"scalings", "tensor"},
                       {"pairs",
                        "e5m2@tensor/fp32,bf16@none/dynamic:256,bf16/dynamic,fp32/fp32,"
                        "e4m3fn@block:128/fp32,e4m3fn@block/fp32"}}),
            (std::vector<std::string>{
                "fp32 / fp32", "e5m2 / fp32", "bf16 / dynamic", "e4m3fn@block / fp32"}));
}

TEST(MomentPairs, Fp32AndDynamicAreNeverScaled) {
  EXPECT_EQ(PairTexts({{"m", "fp32,dynamic,dynamic:64"},
                       {"v", "fp32"},
                       {"scalings", "none,tensor,block:128,coat:128"},
                       {"pairs", "none"}}),
            (std::vector<std::string>{"fp32 / fp32", "dynamic / fp32", "dynamic:64 / fp32"}));
}

TEST(MomentPairs, CoatIsForFormatsOfEightBits) {
  EXPECT_EQ(PairTexts({{"m", "bf16,fp16,e4m3fn,fp32"},
                       {"v", "fp16,e5m2"},
                       {"scalings", "coat:64"},
                       {"pairs", "none"}}),
            (std::vector<std::string>{
                "fp32 / fp32", "e4m3fn@coat:64 / e5m2@coat:64", "fp32 / e5m2@coat:64"}));
}

TEST(MomentPairs, PartsAreFormatAndStorage) {
  EXPECT_EQ(FormatPart("e4m3fn@block:64+sr"), "e4m3fn");
  EXPECT_EQ(StoragePart("e4m3fn@block:64+sr"), "@block:64+sr");
  EXPECT_EQ(FormatPart("dynamic:64"), "dynamic");
  EXPECT_EQ(StoragePart("e5m2+sr:8"), "+sr:8");
  EXPECT_EQ(FormatPart("fp32"), "fp32");
  EXPECT_EQ(StoragePart("fp32"), "");
}

TEST(MomentFormats, EveryPresetHasItsPairsForEachOfItsSeeds) {
  const Experiment experiment = MomentFormats();
  std::vector<std::string> names;
  std::vector<size_t> counts;
  for (const Preset& preset : experiment.presets) {
    names.push_back(preset.name);
    const std::string size = "65536";  // in place of the 64 MiB of paper
    Overrides overrides = {{"text-size", size}};
    if (preset.name == "paper" || preset.name == "100m") overrides["batch"] = "2";
    const Settings settings = MakeSettings(experiment, preset.name, 5, preset.seeds, overrides);
    const std::vector<Trial> trials = experiment.trials(settings);
    const std::vector<MomentPair> pairs = PairsOf(settings);
    ASSERT_EQ(trials.size(), ArmsOf(settings).size() * static_cast<size_t>(preset.seeds))
        << preset.name;
    std::set<std::string> labels;
    for (size_t i = 0; i < trials.size(); ++i) {
      EXPECT_TRUE(labels.insert(trials[i].label).second) << trials[i].label;
      EXPECT_EQ(trials[i].seed, 5 + i % static_cast<size_t>(preset.seeds));
    }
    const std::string epsilon = preset.name == "100m" ? "1e-5" : "1e-8";
    EXPECT_THAT(trials[0].label, StartsWith("fp32 / fp32 epsilon=" + epsilon + " fresh lr="));
    // The pairs that the claims are about.
    std::vector<MomentPair> wanted = {
        {"e4m3fn", "e5m2"}, {"e5m2", "e5m2"}, {"e4m3fn", "e4m3fn"}, {"e5m2", "e4m3fn"}};
    if (preset.name == "small") {
      wanted.insert(wanted.end(), {{"e4m3", "e5m2"}, {"e4m3fn", "fp16@tensor"}});
    }
    for (const MomentPair& pair : wanted) {
      EXPECT_NE(std::find(pairs.begin(), pairs.end(), pair), pairs.end())
          << preset.name << ": " << pair.Text();
    }
    counts.push_back(pairs.size());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"quick", "small", "100m", "paper", "demo"}));
  EXPECT_LT(counts[0], 20u);  // within 3 minutes
  EXPECT_GT(counts[1], counts[0]);
  EXPECT_EQ(counts[2], 8u);
  EXPECT_GT(counts[3], counts[1]);
  EXPECT_LT(counts[4], counts[0]);
  EXPECT_GE(FindPreset(experiment, "paper").seeds, 3);
}

std::string TrialsMessage(const Overrides& overrides) {
  return ErrorOf([&] { MomentFormats().trials(SettingsWith(overrides)); });
}

TEST(MomentFormats, BadOptionsAreNamed) {
  EXPECT_EQ(TrialsMessage(kTiny), "no error");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"m", "e9m9"},
      {"v", "e9m9"},
      {"m", "e4m3fn@tensor"},
      {"v", "e5m2+sr"},
      {"m", ""},
      {"v", "e8m0fnu"},
      {"scalings", "row"},
      {"scalings", "none,dynamic"},
      {"scalings", "block:0"},
      {"scalings", ""},
      {"pairs", "bf16"},
      {"pairs", "bf16/e9m9"},
      {"pairs", "fp32@tensor/fp32"},
      {"pairs", "bf16@coat/fp32"},
      {"pairs", "bf16/bf16,"},
      {"text-size", "1000"},
      {"layers", "0"},
      {"layers", "129"},
      {"width", "0"},
      {"heads", "0"},
      {"heads", "3"},   // does not divide the width
      {"heads", "16"},  // a head of one element cannot be rotated
      {"context", "0"},
      {"context", "8192"},  // longer than the validation text
      {"batch", "0"},
      {"batch", "1024"},  // no batch of validation
      {"steps", "9"},
      {"steps", "x"},
      {"lr", "0"},
      {"lr", "nan"},
      {"warmup", "-1"},
      {"warmup", "21"},
      {"epsilon", "0"},
      {"beta1", "1"},
      {"beta2", "-0.1"},
      {"weight-decay", "-1"},
      {"clip", "-1"},
      {"update-from", "old"},
      {"update-from", "fresh,fresh"},
      {"epsilon", "1e-8,0"},
      {"epsilon", "1e-8,1e-8"},
      {"lr", "1e-3,x"},
      {"vocabulary", "1"},
      {"vocabulary", "65537"},
      {"records", "1"},
      {"records", "21"},
      {"valid-batches", "0"},
      {"billions", "0"},
  };
  for (const auto& [option, value] : bad) {
    const std::string message = TrialsMessage(With(kTiny, option, value));
    EXPECT_THAT(message, HasSubstr("--" + option));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(MomentFormats, BadOptionsAreFoundInAnyPlaceOfAList) {
  for (const char* const option : {"m", "v"}) {
    EXPECT_THAT(TrialsMessage(With(kTiny, option, "fp32,e9m9")), HasSubstr("e9m9"));
  }
  // Though no format of the grid is scaled.
  Overrides overrides = With(With(kTiny, "m", "fp32"), "v", "fp32");
  EXPECT_THAT(TrialsMessage(With(overrides, "scalings", "tensor,row")), HasSubstr("row"));
}

TEST(MomentFormats, TextHasToBeThereAndToFillABatch) {
  const TemporaryDirectory directory;
  const std::string path = (directory.Path() / "text.txt").string();
  EXPECT_THAT(TrialsMessage(With(kTiny, "text", path)), HasSubstr(path));
  std::ofstream(path) << std::string(100, 'a');
  EXPECT_THAT(TrialsMessage(With(kTiny, "text", path)), HasSubstr("--context"));
  std::ofstream(path) << std::string(1000, 'a');
  EXPECT_EQ(TrialsMessage(With(kTiny, "text", path)), "no error");
}

TEST(MomentFormats, TheBaselineIsTrainedForOneUpdate) {
  const std::vector<Arm> arms = ArmsOf(
      SettingsWith(With(With(kTiny, "update-from", "stored,fresh"), "epsilon", "1e-8,1e-5")));
  const size_t baselines = static_cast<size_t>(std::count_if(
      arms.begin(), arms.end(), [](const Arm& arm) { return arm.pair == kBaseline; }));
  EXPECT_EQ(baselines, 2u);
  EXPECT_EQ(arms.size(), 2u * (2 * PairsOf(SettingsWith(kTiny)).size() - 1));
}

TEST(MomentConfig, TokensOfALargeVocabulary) {
  const Overrides zipf = With(kTiny, "vocabulary", "1000");
  const TrainConfig config = ConfigOf(SettingsWith(zipf), {kBaseline, kTinyRegime}, 0);
  EXPECT_EQ(config.data.kind, DataKind::kZipf);
  EXPECT_EQ(config.data.vocabulary, 1000u);
  const TrainConfig text =
      ConfigOf(SettingsWith(With(zipf, "text", "a.txt")), {kBaseline, kTinyRegime}, 0);
  EXPECT_EQ(text.data.kind, DataKind::kText);
  EXPECT_EQ(text.data.tokenizer, TokenizerKind::kBpe);
  EXPECT_EQ(text.data.vocabulary, 1000u);
  EXPECT_THAT(TrialsMessage(With(zipf, "text", "a.txt")), HasSubstr("a.txt: cannot open"));
}

TEST(MomentConfig, TakesEveryOption) {
  const TrainConfig config = ConfigOf(SettingsWith({{"text-size", "20000"},
                                                    {"layers", "3"},
                                                    {"width", "96"},
                                                    {"heads", "6"},
                                                    {"context", "48"},
                                                    {"batch", "5"},
                                                    {"steps", "700"},
                                                    {"lr", "0.25"},
                                                    {"warmup", "11"},
                                                    {"epsilon", "1e-6"},
                                                    {"beta1", "0.8"},
                                                    {"beta2", "0.99"},
                                                    {"weight-decay", "0.5"},
                                                    {"clip", "2"},
                                                    {"update-from", "stored"},
                                                    {"records", "7"},
                                                    {"valid-batches", "13"}}),
                                      {{"e4m3fn@block:64", "dynamic"}, {"1e-6", "stored", "0.25"}},
                                      42);
  EXPECT_EQ(config.model.kind, ModelKind::kLlama);
  EXPECT_EQ(config.model.layers, 3u);
  EXPECT_EQ(config.model.width, 96u);
  EXPECT_EQ(config.model.heads, 6u);
  EXPECT_EQ(config.model.context, 48u);
  EXPECT_EQ(config.data.kind, DataKind::kGeneratedText);
  EXPECT_EQ(config.data.size, 20000u);
  EXPECT_EQ(config.train.batch, 5u);
  EXPECT_EQ(config.train.steps, 700u);
  EXPECT_EQ(config.train.seed, 42u);
  EXPECT_EQ(config.train.valid_batches, 13u);
  EXPECT_EQ(config.schedule.steps, 700u);
  EXPECT_EQ(config.schedule.peak, 0.25);
  EXPECT_EQ(config.schedule.warmup, 11u);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(config.optimizer.epsilon, 1e-6);
  EXPECT_EQ(config.optimizer.beta1, 0.8);
  EXPECT_EQ(config.optimizer.beta2, 0.99);
  EXPECT_EQ(config.optimizer.weight_decay, 0.5);
  EXPECT_EQ(config.optimizer.clip_norm, 2);
  EXPECT_TRUE(config.optimizer.update_from_stored);
  EXPECT_EQ(ToString(config.optimizer.m), "e4m3fn@block:64");
  EXPECT_EQ(ToString(config.optimizer.v), "dynamic");
  EXPECT_EQ(config.telemetry.tensors_every, 100u);
  EXPECT_FALSE(
      ConfigOf(SettingsWith({}), {kBaseline, kTinyRegime}, 0).optimizer.update_from_stored);
}

// All but the moments is float32, and the text is the same for every seed.
TEST(MomentConfig, PairsAndSeedsDifferInNothingElse) {
  const Settings settings = SettingsWith(kTiny);
  TrainConfig config = ConfigOf(settings, {{"e4m3fn", "e5m2"}, kTinyRegime}, 7);
  EXPECT_EQ(config.linear.all.kind, LinearOptions().kind);
  EXPECT_EQ(config.linear.all.high_precision, "fp32");
  EXPECT_TRUE(config.linear.overrides.empty());
  EXPECT_EQ(config.storage.activations.name, "fp32");
  EXPECT_EQ(config.storage.gradients.name, "fp32");
  EXPECT_EQ(config.optimizer.weights.name, "fp32");
  EXPECT_EQ(config.loss_scaler.kind, LossScaling::kNone);
  EXPECT_EQ(config.optimizer.moment_filter, MomentFilter::kMatrices);
  config.optimizer.m = config.optimizer.v = ParseMomentFormat("fp32");
  config.train.seed = 8;
  EXPECT_EQ(WriteTrainConfig(config),
            WriteTrainConfig(ConfigOf(settings, {kBaseline, kTinyRegime}, 8)));
}

TEST(MomentConfig, ATextFileTakesThePlaceOfTheGeneratedOne) {
  const TrainConfig config =
      ConfigOf(SettingsWith({{"text", "some/text.txt"}}), {kBaseline, kTinyRegime}, 0);
  EXPECT_EQ(config.data.kind, DataKind::kText);
  EXPECT_EQ(config.data.path, "some/text.txt");
}

}  // namespace
}  // namespace numsim::experiments::moment_formats
