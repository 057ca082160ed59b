// Names of other sources, names with two meanings, unknown names, and names of older versions.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"
#include "tests/support/doc_page.h"
#include "tests/support/error_of.h"
#include "tests/support/format_names.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Counts the finite numbers by the definition of the special codes; by looking at each code where
// there are few.
uint64_t FiniteCodes(const FormatSpec& spec) {
  if (spec.Bits() > 16) {
    const uint64_t all = uint64_t{1} << spec.Bits();
    return all - (uint64_t{2} << spec.mantissa_bits);  // IEEE 754: the top exponent of both signs
  }
  uint64_t count = 0;
  for (uint32_t code = 0; code <= spec.CodeMask(); ++code) {
    const ValueClass kind = Classify(spec, code);
    count +=
        kind == ValueClass::kZero || kind == ValueClass::kSubnormal || kind == ValueClass::kNormal;
  }
  return count;
}

TEST(FormatNames, MeanWhatTheirSourcesMean) {
  for (const NameRow& row : ReadNameRows()) {
    SCOPED_TRACE(row.source + " " + row.name);
    Format format;
    ASSERT_EQ(ErrorOf([&] { format = ParseFormat(row.name); }), kNoError);
    EXPECT_EQ(format.name, row.format);
    const FormatSpec& spec = format.spec;
    EXPECT_EQ(spec.Bits(), row.bits);
    EXPECT_EQ(MaxFinite(spec), row.largest);
    EXPECT_EQ(MinPositive(spec), row.smallest);
    EXPECT_EQ(FiniteCodes(spec), row.finite);
    EXPECT_EQ(spec.HasNan(), row.nan.has_value());
    if (row.nan) {
      EXPECT_TRUE(std::isnan(Decode(spec, *row.nan)));
    }
    EXPECT_EQ(!FormatNote(row.name).empty(), row.has_note) << FormatNote(row.name);
    EXPECT_TRUE(ParseFormat(format.name).spec == spec);
  }
}

TEST(FormatNames, OfEverySourceAreInTheList) {
  std::set<std::string> listed;
  for (const NameRow& row : ReadNameRows()) listed.insert(row.source);
  for (const FormatName& row : OtherFormatNames()) {
    EXPECT_TRUE(listed.contains(std::string(row.source))) << row.source;
    EXPECT_EQ(ParseFormat(row.name).name, row.format) << row.name;
  }
}

TEST(FormatNames, AreListedInTheDocs) {
  std::string table = "| format | names of other sources |\n| --- | --- |\n";
  for (const FormatEntry& entry : FormatTable()) {
    std::string text;
    std::string_view last;
    for (const FormatName& row : OtherFormatNames()) {
      if (row.format != entry.name) continue;
      const bool same = row.source == last;
      text += text.empty() ? "" : same ? ", " : "; ";
      text += same ? "" : std::string(row.source) + ": ";
      text += "`" + std::string(row.name) + "`";
      last = row.source;
    }
    if (!text.empty()) table += "| `" + std::string(entry.name) + "` | " + text + " |\n";
  }
  EXPECT_EQ(TableOf(SourceText("docs/formats.md"), "names"), table);
}

// Returns the format of a dtype of safetensors, or "" if it is none.
std::string_view FormatOfSafetensors(std::string_view dtype) {
  for (const FormatName& row : OtherFormatNames()) {
    if (row.source == "safetensors" && row.name == dtype) return row.format;
  }
  return "";
}

TEST(FormatNames, OfSafetensorsAreItsDtypes) {
  for (const NameRow& row : ReadNameRows()) {
    if (row.source != "safetensors") continue;
    EXPECT_EQ(FormatOfSafetensors(row.name), row.format);
  }
  for (const char* other : {"I64", "U8", "BOOL", "F64", "f8_e4m3", ""}) {
    EXPECT_EQ(FormatOfSafetensors(other), "") << other;
  }
}

TEST(FormatNames, KeysAfterABareNameOfOcpChangeThatFormat) {
  EXPECT_EQ(ParseFormat("e2m1:bias=2").name, "ieee-e2m1:bias=2,inf=none,nan=none");
  EXPECT_EQ(MaxFinite(ParseFormat("e2m1:bias=2").spec), 3.0f);
  EXPECT_EQ(ParseFormat("ieee-e2m1:bias=2").name, "ieee-e2m1:bias=2");
  EXPECT_EQ(MaxFinite(ParseFormat("ieee-e2m1:bias=2").spec), 1.5f);
  EXPECT_EQ(ParseFormat("ue4m3:bias=8").name, "ieee-ue4m3:bias=8,inf=none,nan=all-ones");
  // e8m0 takes no keys; the shape of that name does.
  EXPECT_EQ(ParseFormat("e8m0:inf=none,nan=all-ones").spec.Bits(), 9);
}

// Every text that the parser reads, over the shapes with two meanings, is read back to the same.
TEST(FormatNames, TextsAreReadBackForEveryCombination) {
  int accepted = 0;
  for (const char* base : {"e2m1",
                           "e2m3",
                           "e3m2",
                           "ue4m3",
                           "e8m0",
                           "ue8m0",
                           "ieee-e2m1",
                           "ieee-ue4m3",
                           "ieee-e4m3",
                           "F8_E4M3",
                           "E4M3",
                           "float4_e2m1fn"}) {
    for (const char* bias : {"", "bias=3"}) {
      for (const char* inf : {"", "inf=none", "inf=ieee", "inf=top"}) {
        for (const char* nan : {"", "nan=none", "nan=ieee", "nan=all-ones", "nan=negative-zero"}) {
          for (const char* overflow : {"", "overflow=max", "overflow=nan", "overflow=inf"}) {
            std::string text = base;
            char separator = ':';
            for (const char* key : {bias, inf, nan, overflow}) {
              if (*key == '\0') continue;
              text += separator + std::string(key);
              separator = ',';
            }
            SCOPED_TRACE(text);
            FormatSpec spec;
            if (ErrorOf([&] { spec = ParseFormat(text).spec; }) != kNoError) continue;
            ++accepted;
            const std::string written = ToString(spec);
            EXPECT_TRUE(ParseFormat(written).spec == spec) << written;
            EXPECT_EQ(FromFormerNames(written), written);
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 300);
}

TEST(FormatNote, SaysWhatTheNameIsAndWhatElseItMayMean) {
  EXPECT_EQ(FormatNote("e4m3"), "e4m3 ends at 240; OCP E4M3 of papers is e4m3fn");
  EXPECT_EQ(FormatNote("E4M3"), FormatNote("e4m3"));
  EXPECT_EQ(FormatNote("float8_e4m3"), FormatNote("e4m3"));
  EXPECT_EQ(FormatNote("e1m2"),
            "e1m2 follows IEEE 754 and ends at 1.5, with infinity and NaN; where every code is a "
            "number, as in many papers, it is e1m2fn, up to 3.5");
  EXPECT_EQ(MaxFinite(ParseFormat("e1m2:inf=none,nan=none").spec), 3.5f);
  for (const char* text : {"e4m3fn",
                           "e5m2",
                           "e3m4",
                           "e2m1",
                           "ieee-e4m3",
                           "e4m3:bias=8",
                           "e5m10",
                           "F8_E4M3",
                           ".e4m3",
                           "CUDA_R_8F_E4M3",
                           "fp8_e4m3",
                           "nonsense",
                           ""}) {
    EXPECT_EQ(FormatNote(text), "") << text;
  }
}

TEST(FormatNote, IsPassedOnByTheParser) {
  static std::vector<std::string> notes;
  SetFormatNoteHandler([](const std::string& note) { notes.push_back(note); });
  ParseFormatList("e4m3,e4m3fn,e1m2,ieee-e4m3,e2m1");
  ParseFormatWithoutNote("e4m3");
  SetFormatNoteHandler(nullptr);
  ParseFormat("e4m3");
  EXPECT_EQ(notes, (std::vector<std::string>{FormatNote("e4m3"), FormatNote("e1m2")}));
}

TEST(UnknownFormats, GetTheSpellingWithScalesOrTheNearestName) {
  const auto message = [](const std::string& text) { return ErrorOf([&] { ParseFormat(text); }); };
  EXPECT_THAT(message("mxfp4"),
              HasSubstr("use e2m1fn with scales per block of 32 by the rule e8m0"));
  SetUserInterface(UserInterface::kProgram);
  EXPECT_THAT(message("MXFP4"), HasSubstr("--format e2m1fn --granularity block:32 --scale e8m0;"));
  EXPECT_THAT(message("nv-fp4"),
              HasSubstr("--format e2m1fn --granularity block:16 --scale nvfp4;"));
  SetUserInterface(UserInterface::kPython);
  EXPECT_THAT(message("mxfp8"),
              HasSubstr("numsim.quantize(x, \"e4m3fn\", scaling=\"block:32/e8m0\")"));
  SetUserInterface(UserInterface::kLibrary);
  const std::map<std::string, std::string> hints = {
      {"fp8", "did you mean e4m3fn (OCP's E4M3"},
      {"FP6", "e2m3fn"},
      {"fp4", "did you mean e2m1fn"},
      {"int", "did you mean int8 (-127 to 127) or fixed8.0"},
      {"fixed", "did you mean fixedI.F?"},
      {"nf4", "a table of values, which only casts and quantised matrices"},
      {"float64", "at most 32 bits"},
      {"e4m3nf", "did you mean e4m3fn?"},
      {"bfloat61", "did you mean bfloat16?"},
      {"float8_e4m3nf", "did you mean float8_e4m3fn?"},
      {"CUDA_R_8F_E4M4", "did you mean CUDA_R_8F_E4M3?"}};
  for (const auto& [text, hint] : hints) EXPECT_THAT(message(text), HasSubstr(hint)) << text;
  EXPECT_THAT(message("zzzzzzzz"), Not(HasSubstr("did you mean")));
  EXPECT_LT(message(std::string(1 << 20, 'x')).size(), 400u);
}

TEST(ScaledFormats, AreFoundInAnySpellingAndHaveCanonicalElements) {
  for (const ScaledFormat& row : ScaledFormats()) {
    EXPECT_EQ(ParseFormat(row.elements).name, row.elements) << row.name;
    EXPECT_EQ(FindScaledFormat(row.name), &row);
    EXPECT_NE(ErrorOf([&] { ParseFormat(row.name); }), kNoError) << row.name;
  }
  const auto meaning = [](std::string_view text) {
    const ScaledFormat* const row = FindScaledFormat(text);
    return row == nullptr ? std::string("none")
                          : fmt::format("{} {} {}", row->elements, row->block, row->rule);
  };
  EXPECT_EQ(meaning("MXFP4"), "e2m1fn 32 e8m0");
  EXPECT_EQ(meaning("mx_fp6_e2m3"), "e2m3fn 32 e8m0");
  EXPECT_EQ(meaning("mxfp8-e5m2"), "e5m2 32 e8m0");
  EXPECT_EQ(meaning("mxint8"), "fixed2.6:range=symmetric 32 e8m0");
  EXPECT_EQ(meaning("NV-FP4"), "e2m1fn 16 nvfp4");
  for (const char* text : {"", "fp4", "mxfp", "e2m1fn", "mxfp4:bias=1"}) {
    EXPECT_EQ(meaning(text), "none") << text;
  }
}

TEST(FormerNames, BecomeTheIeeeLikeFormatsThatTheyWere) {
  const std::map<std::string, std::string> texts = {
      {"e2m1", "ieee-e2m1"},
      {"e2m1:bias=2", "ieee-e2m1:bias=2"},
      {"e2m3,e4m3fn,e3m2", "ieee-e2m3,e4m3fn,ieee-e3m2"},
      {"e2m1 block:32 e8m0 sr", "ieee-e2m1 block:32 e8m0 sr"},
      {"e4m3fn/e2m1", "e4m3fn/ieee-e2m1"},
      {"switchback:e3m2/e2m3", "switchback:ieee-e3m2/ieee-e2m3"},
      {"e2m1@block:128+sr", "ieee-e2m1@block:128+sr"},
      {"kahan:e3m2", "kahan:ieee-e3m2"},
      {"linear.format=e2m1;data.path=/x/e2m1/y", "linear.format=ieee-e2m1;data.path=/x/e2m1/y"},
      {"e2m1:unfused", "ieee-e2m1:unfused"},
      {"ue4m3", "ieee-ue4m3"},
      {"../e2m1", "../e2m1"},
      {"e2m1fn e2m10 xe2m1 ieee-e2m1 e2m1.npy E2M1 e4m3",
       "e2m1fn e2m10 xe2m1 ieee-e2m1 e2m1.npy E2M1 e4m3"},
      {"", ""}};
  for (const auto& [former, today] : texts) {
    EXPECT_EQ(FromFormerNames(former), today);
    EXPECT_EQ(FromFormerNames(today), today);
  }
  EXPECT_EQ(MaxFinite(ParseFormat(FromFormerNames("e2m1")).spec), 3.0f);
  EXPECT_EQ(MaxFinite(ParseFormat(FromFormerNames("e2m1:inf=none,nan=none")).spec), 6.0f);
}

}  // namespace
}  // namespace numsim
