// Linear layers as options of experiments write them.
#include "experiments/shared/linear_variant.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

TEST(SplitFormats, TakesTheTextsAroundTheSlash) {
  EXPECT_EQ(SplitFormats("int8"), (VariantFormats{"int8", ""}));
  EXPECT_EQ(SplitFormats("e4m3fn/e5m2"), (VariantFormats{"e4m3fn", "e5m2"}));
  EXPECT_EQ(SplitFormats("e4m3:inf=none,nan=none/e5m2"),
            (VariantFormats{"e4m3:inf=none,nan=none", "e5m2"}));
  EXPECT_EQ(SplitFormats("no format/nor this"), (VariantFormats{"no format", "nor this"}));
}

TEST(SplitFormats, NeitherMayBeMissing) {
  for (const char* const text : {"", "/", "int8/", "/int8"}) {
    EXPECT_EQ(ErrorOf([&] { SplitFormats(text); }), "a format is missing") << text;
  }
}

TEST(ParseLinearVariant, LeavesOutWhatIsNotGiven) {
  const LinearOptions kind = ParseLinearVariant("o", "llm-int8");
  EXPECT_EQ(kind.kind, "llm-int8");
  EXPECT_EQ(kind.format, "");
  EXPECT_EQ(kind.gradient_format, "");
  EXPECT_EQ(kind.high_precision, "");
  EXPECT_EQ(ParseLinearVariant("o", "standard").kind, "standard");
  const LinearOptions format = ParseLinearVariant("o", "switchback:int8");
  EXPECT_EQ(format.kind, "switchback");
  EXPECT_EQ(format.format, "int8");
  EXPECT_EQ(format.gradient_format, "");
}

TEST(ParseLinearVariant, ReadsBothFormats) {
  const LinearOptions hybrid = ParseLinearVariant("o", "tensor-wise:e4m3fn/e5m2");
  EXPECT_EQ(hybrid.kind, "tensor-wise");
  EXPECT_EQ(hybrid.format, "e4m3fn");
  EXPECT_EQ(hybrid.gradient_format, "e5m2");
  // A custom format has a colon of its own.
  const LinearOptions custom = ParseLinearVariant("o", "mx:e4m3:inf=none,nan=none/e3m2fn");
  EXPECT_EQ(custom.kind, "mx");
  EXPECT_EQ(custom.format, "e4m3:inf=none,nan=none");
  EXPECT_EQ(custom.gradient_format, "e3m2fn");
}

TEST(ParseLinearVariant, ErrorsNameTheOptionAndTheText) {
  const auto message_of = [](const std::string& text) {
    return ErrorOf([&text] { ParseLinearVariant("layers", text); });
  };
  EXPECT_EQ(message_of("switchback:"),
            "--layers: 'switchback:' is not KIND[:FORMAT[/GRADIENT_FORMAT]]: a format is missing");
  for (const char* const text : {"switchback:/int8",
                                 "switchback:int8/",
                                 "switchforth:int8",
                                 "",
                                 "standard:bf16",
                                 "switchback:e9m9",
                                 "switchback:int8/e9m9",
                                 "switchback/int8"}) {
    EXPECT_TRUE(message_of(text).starts_with("--layers: '" + std::string(text) + "' is not KIND"))
        << message_of(text);
  }
}

}  // namespace
}  // namespace numsim::experiments
