// The experiment `moment-formats`: its pairs, its options, the training that it asks for.
#include "experiments/moment_formats/moment_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/experiments/moment_formats_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::moment_formats {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_EQ(PairTexts({{"m", "bf16,fp16,e5m3,e4m3fn,fp32"},  // e5m3 has nine
                       {"v", "fp16,e5m2"},
                       {"scalings", "coat:64"},
                       {"pairs", "none"}}),
            (std::vector<std::string>{
                "fp32 / fp32", "e4m3fn@coat:64 / e5m2@coat:64", "fp32 / e5m2@coat:64"}));
}

TEST(MomentPairs, PartsAreFormatAndStorage) {
  EXPECT_EQ(FormatPart("e4m3fn@block:64+sr"), "e4m3fn");
  EXPECT_EQ(FormatPart("dynamic:64"), "dynamic");
  EXPECT_EQ(FormatPart("fp32"), "fp32");
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
      {"lr", "0"},
      {"lr", "nan"},
      {"epsilon", "0"},
      {"update-from", "old"},
      {"update-from", "fresh,fresh"},
      {"epsilon", "1e-8,0"},
      {"epsilon", "1e-8,1e-8"},
      {"lr", "1e-3,x"},
      {"vocabulary", "1"},
      {"vocabulary", "65537"},
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

TEST(MomentFormats, TheBaselineIsTrainedForOneUpdate) {
  const std::vector<Arm> arms = ArmsOf(
      MomentFormatsStudy(),
      SettingsWith(With(With(kTiny, "update-from", "stored,fresh"), "epsilon", "1e-8,1e-5")));
  const size_t baselines =
      static_cast<size_t>(std::count_if(arms.begin(), arms.end(), [](const Arm& arm) {
        return arm[kM] == kBaseline.m && arm[kV] == kBaseline.v;
      }));
  EXPECT_EQ(baselines, 2u);
  EXPECT_EQ(arms.size(), 2u * (2 * PairsOf(SettingsWith(kTiny)).size() - 1));
}

TEST(MomentConfig, TokensOfALargeVocabulary) {
  const Overrides zipf = With(kTiny, "vocabulary", "1000");
  const TrainConfig config = ConfigOf(SettingsWith(zipf), kBaseline, 0);
  EXPECT_EQ(config.data.kind, DataKind::kZipf);
  EXPECT_EQ(config.data.vocabulary, 1000u);
  const TrainConfig text = ConfigOf(SettingsWith(With(zipf, "text", "a.txt")), kBaseline, 0);
  EXPECT_EQ(text.data.kind, DataKind::kText);
  EXPECT_EQ(text.data.tokenizer, TokenizerKind::kBpe);
  EXPECT_EQ(text.data.vocabulary, 1000u);
  EXPECT_THAT(TrialsMessage(With(zipf, "text", "a.txt")), HasSubstr("a.txt: cannot open"));
}

// All but the moments is float32, and the text is the same for every seed.
TEST(MomentConfig, PairsAndSeedsDifferInNothingElse) {
  const Settings settings = SettingsWith(kTiny);
  TrainConfig config = ConfigOf(settings, {"e4m3fn", "e5m2"}, 7);
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
  EXPECT_EQ(WriteTrainConfig(config), WriteTrainConfig(ConfigOf(settings, kBaseline, 8)));
}

}  // namespace
}  // namespace numsim::experiments::moment_formats
