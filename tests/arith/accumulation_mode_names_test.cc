// Accumulation modes as text, and the table of named ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "tests/arith/judged_modes.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ParseError(std::string_view text) {
  return ErrorOf([&] { ParseAccumulationMode(text); });
}

TEST(ParseAccumulationMode, ReadsRulesWithoutNumbers) {
  EXPECT_EQ(ParseAccumulationMode("exact").kind, AccumulationKind::kExact);
  EXPECT_EQ(ParseAccumulationMode("fp64").kind, AccumulationKind::kFloat64);
  EXPECT_EQ(ParseAccumulationMode("library").kind, AccumulationKind::kLibrary);
}

TEST(ParseAccumulationMode, ReadsFormats) {
  const AccumulationMode fused = ParseAccumulationMode("bf16");
  EXPECT_EQ(fused.kind, AccumulationKind::kFormat);
  EXPECT_EQ(fused.format, kBf16);
  const AccumulationMode unfused = ParseAccumulationMode("fp32:unfused");
  EXPECT_EQ(unfused.kind, AccumulationKind::kFormatUnfused);
  EXPECT_EQ(unfused.format, kFp32);
  const AccumulationMode custom = ParseAccumulationMode("e6m9:bias=20:unfused");
  EXPECT_EQ(custom.kind, AccumulationKind::kFormatUnfused);
  EXPECT_EQ(custom.format, ParseFormat("e6m9:bias=20").spec);
}

TEST(ParseAccumulationMode, ReadsNumbersOfRules) {
  AccumulationMode chunked;
  chunked.kind = AccumulationKind::kChunked;
  chunked.chunk = 16;
  EXPECT_EQ(ParseAccumulationMode("fp32-chunked:16"), chunked);
  EXPECT_EQ(ParseAccumulationMode("trunc:13,32"), Trunc(13, 32));
  EXPECT_EQ(ParseAccumulationMode("trunc:1,1"), Trunc(1, 1));
  EXPECT_EQ(ParseAccumulationMode("trunc:40,65536"), Trunc(40, 65536));
  EXPECT_EQ(ParseAccumulationMode("trunc:13,32,32"), Trunc(13, 32, 32));
  EXPECT_EQ(ParseAccumulationMode("trunc:25,8,1024"), Trunc(25, 8, 1024));
}

TEST(ParseAccumulationMode, ListsWhatIsValid) {
  for (const char* const text :
       {"", "fp99", "Exact", "exact:unfused", "hopper", "trunc", " fp32"}) {
    const std::string message = ParseError(text);
    EXPECT_TRUE(
        message.starts_with("accumulator '" + std::string(text) + "' is neither exact nor "))
        << message;
    for (const char* const part :
         {"FORMAT:unfused", "fp64", "fp32-chunked:N", "library", "trunc:F,CHUNK[,PROMOTE]"}) {
      EXPECT_THAT(message, HasSubstr(part));
    }
    for (const AccumulationModeRow& row : AccumulationModeTable()) {
      EXPECT_THAT(message, HasSubstr(row.name));
    }
  }
}

TEST(ParseAccumulationMode, NamesTheNearestModeOfADevice) {
  EXPECT_THAT(ParseError("hoper-fp8"), HasSubstr("did you mean hopper-fp8?"));
  EXPECT_THAT(ParseError("hopper"), Not(HasSubstr("did you mean")));
}

TEST(ParseAccumulationMode, NamesTheNumberAtFault) {
  struct Wrong {
    std::string text, part;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {"fp32-chunked:", "N is ''"},
           {"fp32-chunked:0", "N is '0', expected a whole number from 1 to 1073741824"},
           {"fp32-chunked:-1", "N is '-1'"},
           {"fp32-chunked:16x", "N is '16x'"},
           {"fp32-chunked:99999999999", "N is '99999999999'"},
           {"trunc:", "not of the form trunc:F,CHUNK[,PROMOTE]"},
           {"trunc:13", "not of the form trunc:F,CHUNK[,PROMOTE]"},
           {"trunc:13,32,64,128", "not of the form trunc:F,CHUNK[,PROMOTE]"},
           {"trunc:0,32", "F is '0', expected a whole number from 1 to 40"},
           {"trunc:41,32", "F is '41'"},
           {"trunc:+9,32", "F is '+9'"},
           {"trunc:13,0", "CHUNK is '0', expected a whole number from 1 to 65536"},
           {"trunc:13,65537", "CHUNK is '65537'"},
           {"trunc:13, 32", "CHUNK is ' 32'"},
           {"trunc:13,32,0", "PROMOTE is '0'"},
           {"trunc:13,32,", "PROMOTE is ''"},
           {"trunc:13,32,48", "PROMOTE is not a multiple of CHUNK"},
           {"trunc:13,32,16", "PROMOTE is not a multiple of CHUNK"}}) {
    const std::string message = ParseError(wrong.text);
    EXPECT_TRUE(message.starts_with("accumulator '" + wrong.text + "'")) << message;
    EXPECT_THAT(message, HasSubstr(wrong.part));
  }
}

TEST(AccumulationModeName, IsReadBack) {
  std::vector<std::string> texts = {"exact",
                                    "fp64",
                                    "library",
                                    "fp32-chunked:1",
                                    "trunc:7,9",
                                    "trunc:13,32,256",
                                    "e6m9:bias=20",
                                    "e6m9:bias=20:unfused"};
  for (const FormatEntry& entry : FormatTable()) {
    texts.emplace_back(entry.name);
    texts.push_back(std::string(entry.name) + ":unfused");
  }
  for (const std::string& text : texts) {
    EXPECT_EQ(ToString(ParseAccumulationMode(text)), text);
  }
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    EXPECT_EQ(ParseAccumulationMode(row.name), row.mode) << row.name;
    EXPECT_EQ(ParseAccumulationMode(ToString(row.mode)), row.mode) << row.name;
  }
}

TEST(AccumulationModeName, IsTheFirstOfTheTableThatIsTheRule) {
  EXPECT_EQ(ToString(Trunc(13, 32)), "hopper-fp8-fast");
  EXPECT_EQ(ToString(ParseAccumulationMode("hopper-fp16")), "hopper-bf16");
  EXPECT_EQ(ToString(ParseAccumulationMode("trunc:13,32,128")), "hopper-fp8");
  // The order of products belongs to the mode.
  EXPECT_EQ(ToString(ParseAccumulationMode("trunc:25,16,32")), "trunc:25,16,32");
  EXPECT_EQ(DefinitionText(ParseAccumulationMode("hopper-fp8")), "trunc:13,32,128");
}

TEST(AccumulationModeTable, RowsAreComplete) {
  std::set<std::string_view> names;
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.operands.empty() || row.source.empty() || row.note.empty()) << row.name;
    EXPECT_EQ(row.measured, row.source == "Hopper-measured") << row.name;
    EXPECT_GE(row.mode.chunk, 1) << row.name;
    EXPECT_LE(row.mode.chunk, AccumulationMode::kMaxChunk) << row.name;
    EXPECT_EQ(row.mode.promote % row.mode.chunk, 0) << row.name;
    EXPECT_EQ(row.measured, row.measured_inner > 0) << row.name;
  }
}

TEST(AccumulationModeTable, MeasuredRulesAreThoseOfTheDevice) {
  AccumulationMode mma = Trunc(25, 16, 32);
  mma.order = ProductOrder::kBytePairs;
  EXPECT_EQ(ParseAccumulationMode("hopper-fp8-fast"), Trunc(13, 32));
  EXPECT_EQ(ParseAccumulationMode("hopper-fp8"), Trunc(13, 32, 128));
  EXPECT_EQ(ParseAccumulationMode("hopper-bf16"), Trunc(25, 16));
  EXPECT_EQ(ParseAccumulationMode("hopper-fp16"), Trunc(25, 16));
  EXPECT_EQ(ParseAccumulationMode("hopper-mma-fp8"), mma);
}

// Returns the message with which the mode `text` refuses operands of the formats a and b.
std::string Refusal(std::string_view text, std::string_view a, std::string_view b) {
  return ErrorOf(
      [&] { CheckOperands(text, ParseFormat(a).spec, ParseFormat(b).spec, "a flag allows it"); });
}

// The formats of the table that a row is for, in the order of the table of formats.
std::string FormatsOf(const AccumulationModeRow& row) {
  std::string names;
  for (const FormatEntry& entry : FormatTable()) {
    if (IsFor(row, entry.spec)) names += std::string(entry.name) + " ";
  }
  return names;
}

// The names of the modes are made of a device and the operands: fp8 is OCP's except on CDNA3, whose
// formats have no negative zero.
TEST(AccumulationModeOperands, AreThoseThatTheNameSays) {
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    const std::string_view name = row.name;
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    const std::string expected = name == "hopper-mma-fp8" ? "e4m3fn "
                                 : name == "cdna3-fp8"    ? "e4m3fnuz e5m2fnuz "
                                 : name == "mxf8f6f4"     ? "e5m2 e4m3fn e3m2fn e2m3fn e2m1fn "
                                 : has("mxf4")            ? "e2m1fn "
                                 : has("fp8")             ? "e5m2 e4m3fn "
                                 : has("bf16")            ? "bf16 "
                                 : has("fp16")            ? "fp16 "
                                                          : "tf32 ";
    EXPECT_EQ(FormatsOf(row), expected) << name;
  }
}

TEST(AccumulationModeOperands, ACustomTextOfTheSameFormatIsThatFormat) {
  EXPECT_EQ(Refusal("hopper-fp8", "e4m3:inf=none,nan=all-ones,overflow=nan", "e4m3fn"), kNoError);
  EXPECT_NE(Refusal("hopper-fp8", "e4m3fn:overflow=max", "e4m3fn"), kNoError);
}

TEST(CheckOperands, RefusesEachOperandThatTheDeviceDoesNotTake) {
  EXPECT_EQ(Refusal("hopper-bf16", "bf16", "bf16"), kNoError);
  EXPECT_EQ(Refusal("hopper-fp8", "e4m3fn", "e5m2"), kNoError);
  for (const auto& [a, b] : {std::pair("bf16", "e4m3fn"), {"e4m3fn", "bf16"}, {"fp16", "fp16"}}) {
    EXPECT_NE(Refusal("hopper-bf16", a, b), kNoError) << a << " " << b;
  }
  EXPECT_NE(Refusal("hopper-mma-fp8", "e4m3fn", "e5m2"), kNoError);
  EXPECT_NE(Refusal("cdna3-fp8", "e4m3fn", "e4m3fn"), kNoError);
}

// hopper-bf16 and hopper-fp16 have one definition. It is the name that promises a device.
TEST(CheckOperands, TextsWithoutADeviceAreForAllFormats) {
  for (const char* const text : {"exact",
                                 "fp64",
                                 "fp32",
                                 "bf16",
                                 "fp16:unfused",
                                 "fp32-chunked:8",
                                 "trunc:25,16",
                                 "library"}) {
    for (const FormatEntry& entry : FormatTable()) {
      EXPECT_EQ(Refusal(text, entry.name, entry.name), kNoError) << text << " " << entry.name;
    }
  }
  EXPECT_EQ(ParseAccumulationMode("hopper-fp16"), ParseAccumulationMode("trunc:25,16"));
  EXPECT_NE(Refusal("hopper-fp16", "bf16", "bf16"), kNoError);
}

TEST(CheckOperands, SaysWhichModesAreForTheOperands) {
  EXPECT_EQ(
      Refusal("hopper-bf16", "e4m3fn", "e4m3fn"),
      "accumulation mode hopper-bf16 is for bf16, not for e4m3fn; a flag allows it; modes for "
      "e4m3fn: hopper-fp8-fast, hopper-fp8, hopper-mma-fp8, ada-fp8, blackwell-fp8, mxf8f6f4");
  const std::string mixed = Refusal("hopper-mma-fp8", "e4m3fn", "e5m2");
  EXPECT_THAT(mixed, HasSubstr("is for e4m3fn, not for e4m3fn by e5m2"));
  EXPECT_THAT(mixed, HasSubstr("for e4m3fn by e5m2: hopper-fp8-fast, hopper-fp8, ada-fp8"));
  EXPECT_THAT(Refusal("hopper-fp8", "e2m1fn", "e2m1fn"),
              HasSubstr("for e2m1fn: mxf8f6f4, mxf4, mxf4nvf4"));
  EXPECT_THAT(Refusal("hopper-fp8", "fp32", "fp32"), HasSubstr("for fp32: only those without"));
}

TEST(AccumulationModeTable, RecordsTheLongestSumThatWasCompared) {
  // experiments/published/cuda/cublaslt-products.csv.gz (cuBLASLt), tests/gemm/recorded/record_hopper.py --large
  // (mma.sync), and [Hopper-measured] for tf32.
  const std::pair<const char*, size_t> recorded[] = {{"hopper-fp8-fast", 7168},
                                                     {"hopper-fp8", 11008},
                                                     {"hopper-bf16", 8192},
                                                     {"hopper-fp16", 8192},
                                                     {"hopper-mma-fp8", 1024},
                                                     {"hopper-tf32", 256}};
  for (const auto& [name, inner] : recorded) {
    ASSERT_NE(FindAccumulationMode(name), nullptr);
    EXPECT_EQ(FindAccumulationMode(name)->measured_inner, inner) << name;
  }
  EXPECT_EQ(FindAccumulationMode("exact"), nullptr);
  EXPECT_EQ(FindAccumulationMode("hopper"), nullptr);
}

TEST(ParseOrderedAccumulationMode, KnowsEveryTextExceptLibrary) {
  for (const char* const text : {"exact", "fp64", "fp32", "trunc:13,32", "hopper-fp8"}) {
    EXPECT_EQ(ParseOrderedAccumulationMode(text), ParseAccumulationMode(text)) << text;
  }
  const std::string error = ErrorOf([] { ParseOrderedAccumulationMode("nope"); });
  EXPECT_THAT(error, HasSubstr("hopper-fp8"));
  EXPECT_THAT(error, Not(HasSubstr("library")));
  EXPECT_THAT(ErrorOf([] { ParseAccumulationMode("nope"); }), HasSubstr("library"));
  EXPECT_NE(ErrorOf([] { ParseOrderedAccumulationMode("library"); }), kNoError);
}

TEST(NanResult, IsAllOnesOnNvidiaUnitsAlone) {
  for (const char* const text :
       {"trunc:13,32", "hopper-fp8", "ada-tf32", "hopper-mma-fp8", "mxf8f6f4", "mxf4nvf4"}) {
    EXPECT_EQ(NanResult(ParseAccumulationMode(text)), 0x7FFFFFFFu) << text;
  }
  for (const char* const text : {"exact",
                                 "fp64",
                                 "fp32",
                                 "fp16:unfused",
                                 "fp32-chunked:8",
                                 "library",
                                 "cdna1-fp16",
                                 "cdna2-bf16",
                                 "cdna3-fp8"}) {
    EXPECT_EQ(NanResult(ParseAccumulationMode(text)), 0x7FC00000u) << text;
  }
}

}  // namespace
}  // namespace numsim
