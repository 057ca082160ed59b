#include "numsim/moments/moment_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "tests/moments/moment_cases.h"
#include "tests/support/error_of.h"

namespace numsim::moment_test {
namespace {

using ::testing::HasSubstr;

std::string ParseError(const std::string& text) {
  return ErrorOf([&] { ParseMomentFormat(text); });
}

TEST(ParseMomentFormat, ReadsEveryPart) {
  const MomentFormat coat = ParseMomentFormat("e4m3@coat:64+sr:12");
  EXPECT_EQ(coat.format.spec, kE4M3);
  EXPECT_EQ(coat.scaling, MomentScaling::kCoat);
  EXPECT_EQ(coat.block, 64u);
  EXPECT_EQ(coat.rounding, (Rounding{RoundingMode::kStochastic, StochasticVariant::kA, 12}));
  const MomentFormat dynamic = ParseMomentFormat("dynamic:512+sr");
  EXPECT_EQ(dynamic.scaling, MomentScaling::kDynamic);
  EXPECT_EQ(dynamic.block, 512u);
  EXPECT_EQ(dynamic.rounding.random_bits, 32);
}

TEST(ParseMomentFormat, ScalesNarrowFormatsByTensorAndWideOnesNotAtAll) {
  for (const char* text : {"e4m3fn", "e5m2", "int8", "e2m1fn", "e3m4:bias=4"}) {
    EXPECT_EQ(ParseMomentFormat(text).scaling, MomentScaling::kTensor) << text;
  }
  for (const char* text : {"fp32", "bf16", "fp16", "e5m3"}) {
    EXPECT_EQ(ParseMomentFormat(text).scaling, MomentScaling::kNone) << text;
  }
}

TEST(ParseMomentFormat, TakesBlocksOf128AndOf256ForTheDynamicMap) {
  EXPECT_EQ(ParseMomentFormat("e5m2@block").block, 128u);
  EXPECT_EQ(ParseMomentFormat("e5m2@coat").block, 128u);
  EXPECT_EQ(ParseMomentFormat("dynamic").block, 256u);
}

TEST(ParseMomentFormat, SaysWhatIsExact) {
  EXPECT_TRUE(ParseMomentFormat("fp32").IsExact());
  EXPECT_TRUE(ParseMomentFormat("fp32@none").IsExact());
  EXPECT_FALSE(ParseMomentFormat("bf16").IsExact());
}

// A text below is printed back as it is, or as the text behind it.
TEST(MomentFormatName, LeavesDefaultsOut) {
  const std::pair<const char*, const char*> texts[] = {
      {"fp32", "fp32"},
      {"fp32@none", "fp32"},
      {"e4m3fn@tensor", "e4m3fn"},
      {"e4m3fn@none", "e4m3fn@none"},
      {"bf16@none", "bf16"},
      {"bf16@tensor", "bf16@tensor"},
      {"e5m2@block:128", "e5m2@block"},
      {"e5m2@block:64", "e5m2@block:64"},
      {"e4m3@coat:128+sr", "e4m3@coat+sr"},
      {"e4m3@coat:256+sr:32", "e4m3@coat:256+sr"},
      {"dynamic:256", "dynamic"},
      {"dynamic:128+sr:1", "dynamic:128+sr:1"},
      {"e3m4:bias=4,inf=none,nan=none@block:16+sr:7",
       "e3m4:bias=4,inf=none,nan=none@block:16+sr:7"},
  };
  for (const auto& [text, name] : texts) {
    SCOPED_TRACE(text);
    const std::string printed = ToString(ParseMomentFormat(text));
    EXPECT_EQ(printed, name);
    EXPECT_EQ(ToString(ParseMomentFormat(printed)), printed);
  }
}

TEST(MomentFormatName, ReadsBackToTheSame) {
  for (const std::string& text : FormatTexts()) {
    const MomentFormat format = ParseMomentFormat(text);
    const MomentFormat again = ParseMomentFormat(ToString(format));
    EXPECT_EQ(again.format.spec, format.format.spec) << text;
    EXPECT_EQ(again.scaling, format.scaling) << text;
    EXPECT_EQ(again.block, format.block) << text;
    EXPECT_EQ(again.rounding, format.rounding) << text;
  }
}

TEST(ParseMomentFormat, RefusesTextsThatMeanNothing) {
  const std::pair<const char*, const char*> texts[] = {
      {"", "format"},
      {"fp31", "'fp31'"},
      {"e4m3fn@", "none, tensor, block, coat, dynamic"},
      {"e4m3fn@blocks", "none, tensor, block, coat, dynamic"},
      {"e4m3fn@dynamic", "dynamic[:BLOCK]"},
      {"dynamic@block", "dynamic[:BLOCK]"},
      {"e4m3fn@tensor:128", "tensor takes no block"},
      {"e4m3fn@none:128", "none takes no block"},
      {"e4m3fn@block:0", "'0' is not a block size from 1"},
      {"e4m3fn@block:", "'' is not a block size"},
      {"e4m3fn@block:-1", "'-1' is not a block size"},
      {"e4m3fn@block:12x", "'12x' is not a block size"},
      {"e4m3fn@block:99999999999", "is not a block size"},
      {"dynamic:0", "'0' is not a block size"},
      {"dynamics", "'dynamics'"},
      {"e4m3fn+", "expected +sr or +sr:BITS"},
      {"e4m3fn+rne", "expected +sr or +sr:BITS"},
      {"e4m3fn+sr:0", "'0' is not a number of random bits from 1 to 32"},
      {"e4m3fn+sr:33", "'33' is not a number of random bits from 1 to 32"},
      {"e4m3fn+sr:", "'' is not a number of random bits"},
      {"e4m3fn+sr@tensor", "expected +sr or +sr:BITS"},
      {"fp32@tensor", "expected fp32"},
      {"fp32+sr", "expected fp32"},
      {"tf32", "up to 16 bits"},
      {"e8m0fnu", "a sign and a zero"},
      {"binary8p3uf", "a sign and a zero"},
      {"bf16@coat", "up to 8"},
      {"fp16@coat:64", "up to 8"},
  };
  for (const auto& [text, part] : texts) {
    EXPECT_THAT(ParseError(text), HasSubstr(part)) << text;
  }
}

TEST(ParseMomentFormatList, KeepsCommasOfCustomFormats) {
  const std::vector<MomentFormat> formats =
      ParseMomentFormatList("fp32,e4m3fn@coat,e3m4:bias=4,inf=none,nan=none@block:16+sr,dynamic");
  ASSERT_EQ(formats.size(), 4u);
  EXPECT_EQ(ToString(formats[0]), "fp32");
  EXPECT_EQ(ToString(formats[1]), "e4m3fn@coat");
  EXPECT_EQ(formats[2].format.spec.bias, 4);
  EXPECT_EQ(formats[2].block, 16u);
  EXPECT_EQ(formats[2].rounding.mode, RoundingMode::kStochastic);
  EXPECT_EQ(ToString(formats[3]), "dynamic");
}

TEST(ParseMomentFormatList, RefusesEmptyPieces) {
  EXPECT_THROW(ParseMomentFormatList(""), Error);
  EXPECT_THROW(ParseMomentFormatList("fp32,"), Error);
  EXPECT_THROW(ParseMomentFormatList("fp32,,bf16"), Error);
}

}  // namespace
}  // namespace numsim::moment_test
