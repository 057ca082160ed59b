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
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

std::string ParseError(std::string_view text) {
  return ErrorOf([&] { ParseAccumulationMode(text); });
}

AccumulationMode Aligned(int fraction_bits, int chunk, int promote = 0) {
  AccumulationMode rule;
  rule.kind = AccumulationKind::kAligned;
  rule.fraction_bits = fraction_bits;
  rule.chunk = chunk;
  rule.promote = promote;
  return rule;
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
  EXPECT_EQ(ParseAccumulationMode("trunc:13,32"), Aligned(13, 32));
  EXPECT_EQ(ParseAccumulationMode("trunc:1,1"), Aligned(1, 1));
  EXPECT_EQ(ParseAccumulationMode("trunc:40,65536"), Aligned(40, 65536));
  EXPECT_EQ(ParseAccumulationMode("trunc:13,32,32"), Aligned(13, 32, 32));
  EXPECT_EQ(ParseAccumulationMode("trunc:25,8,1024"), Aligned(25, 8, 1024));
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
    EXPECT_EQ(ParseAccumulationMode(row.name), row.rule) << row.name;
    EXPECT_EQ(ParseAccumulationMode(ToString(row.rule)), row.rule) << row.name;
  }
}

TEST(AccumulationModeName, IsTheFirstOfTheTableThatIsTheRule) {
  EXPECT_EQ(ToString(Aligned(13, 32)), "hopper-fp8-fast");
  EXPECT_EQ(ToString(ParseAccumulationMode("hopper-fp16")), "hopper-bf16");
  EXPECT_EQ(ToString(ParseAccumulationMode("trunc:13,32,128")), "hopper-fp8");
  // The order of products belongs to the rule.
  EXPECT_EQ(ToString(ParseAccumulationMode("trunc:25,16,32")), "trunc:25,16,32");
  EXPECT_EQ(DefinitionText(ParseAccumulationMode("hopper-fp8")), "trunc:13,32,128");
}

TEST(AccumulationModeTable, RowsAreComplete) {
  std::set<std::string_view> names;
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.operands.empty() || row.source.empty() || row.note.empty()) << row.name;
    EXPECT_EQ(row.measured, row.source == "Hopper-measured") << row.name;
    EXPECT_GE(row.rule.chunk, 1) << row.name;
    EXPECT_LE(row.rule.chunk, AccumulationMode::kMaxChunk) << row.name;
    EXPECT_EQ(row.rule.promote % row.rule.chunk, 0) << row.name;
    EXPECT_FALSE(ParseFormatList(row.operands.substr(0, row.operands.find(','))).empty());
  }
}

TEST(AccumulationModeTable, MeasuredRulesAreThoseOfTheDevice) {
  AccumulationMode mma = Aligned(25, 16, 32);
  mma.order = ProductOrder::kBytePairs;
  EXPECT_EQ(ParseAccumulationMode("hopper-fp8-fast"), Aligned(13, 32));
  EXPECT_EQ(ParseAccumulationMode("hopper-fp8"), Aligned(13, 32, 128));
  EXPECT_EQ(ParseAccumulationMode("hopper-bf16"), Aligned(25, 16));
  EXPECT_EQ(ParseAccumulationMode("hopper-fp16"), Aligned(25, 16));
  EXPECT_EQ(ParseAccumulationMode("hopper-mma-fp8"), mma);
}

TEST(NanResult, IsAllOnesOnNvidiaUnitsAlone) {
  for (const char* const text : {"trunc:13,32", "hopper-fp8", "ada-tf32", "hopper-mma-fp8"}) {
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
