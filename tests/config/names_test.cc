// Names of formats in configurations, and in configurations of older versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "numsim/formats/decode.h"
#include "tests/support/error_of.h"
#include "tests/support/format_names.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

TrainConfig ParseNamed(const std::string& toml, DocumentNames names = DocumentNames::kTodays) {
  return ParseTrainConfig(toml, "a.toml", {}, {}, names);
}

TEST(ConfigNames, MeanWhatTheirSourcesMean) {
  for (const NameRow& row : ReadNameRows()) {
    SCOPED_TRACE(row.source + " " + row.name);
    const std::string toml = "[storage]\nactivations = \"" + row.name + "\"\n";
    TrainConfig config;
    const std::string error = ErrorOf([&] { config = ParseNamed(toml); });
    // Storage takes formats with a sign and a zero.
    if (row.format.starts_with("u") || row.format.starts_with("ieee-u") ||
        row.format == "e8m0fnu") {
      EXPECT_THAT(error, HasSubstr("storage.activations"));
      continue;
    }
    ASSERT_EQ(error, kNoError);
    const Format& format = config.storage.activations;
    EXPECT_EQ(format.name, row.format);
    EXPECT_EQ(format.spec.Bits(), row.bits);
    EXPECT_EQ(MaxFinite(format.spec), row.largest);
    EXPECT_EQ(MinPositive(format.spec), row.smallest);
    if (row.nan) {
      EXPECT_EQ(Classify(format.spec, *row.nan), ValueClass::kNan);
    }
  }
}

TEST(ConfigNames, OfOneFormatAreEqualConfigurations) {
  const std::string a =
      "[linear]\nkind = \"switchback\"\nformat = \"float8_e4m3fn\"\n"
      "high_precision = \"bfloat16\"\n";
  const std::string b =
      "[linear]\nkind = \"switchback\"\nformat = \"e4m3fn\"\n"
      "high_precision = \"bf16\"\n";
  EXPECT_EQ(WriteTrainConfig(ParseNamed(a)), WriteTrainConfig(ParseNamed(b)));
}

constexpr const char* kFormerConfig =
    "[linear]\nkind = \"tensor-wise\"\nformat = \"e2m3\"\naccumulate = \"e3m2\"\n"
    "[storage]\ngradients = \"e3m2:bias=2\"\n[optimizer]\nm = \"e3m2@block:64\"\n"
    "[what_if]\nrecipes = [\"e2m1 block:32 e8m0 sr\"]\n";

void ExpectFormer(const TrainConfig& config) {
  EXPECT_EQ(config.linear.all.format, "ieee-e2m3");
  EXPECT_EQ(config.linear.all.accumulate, "ieee-e3m2");
  EXPECT_EQ(config.storage.gradients.name, "ieee-e3m2:bias=2");
  EXPECT_EQ(ToString(config.optimizer.m), "ieee-e3m2@block:64");
  EXPECT_EQ(ToString(config.what_if.recipes.at(0)), "ieee-e2m1 block:32 e8m0 sr");
}

TEST(FormerConfig, KeepsItsMeaningAndSaysSoWhenWrittenAgain) {
  ExpectFormer(ParseNamed(kFormerConfig, DocumentNames::kFormer));
  ExpectFormer(ParseNamed(std::string("names = 1\n") + kFormerConfig));
  const std::string written = WriteTrainConfig(ParseNamed(kFormerConfig, DocumentNames::kFormer));
  ExpectFormer(ParseNamed(written));
  ExpectFormer(ParseNamed(written, DocumentNames::kFormer));
}

TEST(FormerConfig, IsToldFromTodaysNames) {
  const std::string mode = "[linear]\nkind = \"tensor-wise\"\naccumulate = \"e3m2\"\n";
  const std::string written = WriteTrainConfig(ParseNamed(mode));
  EXPECT_TRUE(written.starts_with("names = 2\n"));
  EXPECT_EQ(ParseNamed(written, DocumentNames::kFormer).linear.all.accumulate, "e3m2");
  // Where no name can be misread, the file does not say which names it has.
  EXPECT_TRUE(WriteTrainConfig(TrainConfig()).starts_with("[model]\n"));
}

// A user does not write nearly every key; a file that has them is the config.toml of a training.
TEST(FormerConfig, IsRecognisedByItsKeysAnywhere) {
  std::string written = WriteTrainConfig(ParseNamed(kFormerConfig, DocumentNames::kFormer));
  written.erase(0, written.find('['));
  for (size_t at = written.find("ieee-"); at != written.npos; at = written.find("ieee-")) {
    written.erase(at, 5);
  }
  ExpectFormer(ParseNamed(written));
}

TEST(FormerConfig, IsNotWhatAUserWritesToday) {
  for (const TrainConfig& config :
       {ParseNamed(kFormerConfig),
        ParseNamed(std::string("names = 2\n") + kFormerConfig, DocumentNames::kFormer)}) {
    EXPECT_EQ(config.linear.all.format, "e2m3fn");
    EXPECT_EQ(config.what_if.recipes.at(0).format.name, "e2m1fn");
  }
  EXPECT_THAT(ErrorOf([] { ParseNamed("names = 3\n"); }), HasSubstr("expected 1 or 2"));
  EXPECT_THAT(ErrorOf([] { ParseTrainConfig("", "a", {}, {"names=1"}); }), HasSubstr("names"));
}

using FormerRun = IoTest;

TEST_F(FormerRun, IsRecognisedByItsPlace) {
  std::ofstream(Directory() / "config.toml") << kFormerConfig;
  EXPECT_EQ(ReadTrainConfig(Directory() / "config.toml", {}).linear.all.format, "e2m3fn");
  std::ofstream(Directory() / "train.csv") << "step,loss\n";
  ExpectFormer(ReadTrainConfig(Directory() / "config.toml", {}));
  std::ofstream(Directory() / "mine.toml") << kFormerConfig;
  EXPECT_EQ(ReadTrainConfig(Directory() / "mine.toml", {}).linear.all.format, "e2m3fn");
}

}  // namespace
}  // namespace numsim
