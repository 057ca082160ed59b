// `numsim formats`: the table, one format, JSON.
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Json = nlohmann::json;
class FormatsCommand : public ProgramTest {};

// "nan", "-nan", "inf", "-0", "0.75" as the program writes values.
float ValueOf(const std::string& text) { return std::strtof(text.c_str(), nullptr); }

// The same number with the same sign; NaN equals NaN of the same sign.
void ExpectSameValue(float a, float b, const std::string& where) {
  EXPECT_EQ(std::signbit(a), std::signbit(b)) << where;
  if (std::isnan(b)) {
    EXPECT_TRUE(std::isnan(a)) << where;
  } else {
    EXPECT_EQ(a, b) << where;
  }
}

TEST_F(FormatsCommand, TableHasALineForEachFormatInOrder) {
  const std::vector<std::string> lines = Numsim("formats").Lines();
  ASSERT_GT(lines.size(), FormatTable().size());
  for (size_t i = 0; i < FormatTable().size(); ++i) {
    const FormatEntry& entry = FormatTable()[i];
    const std::vector<std::string> words = Words(lines[i + 1]);
    ASSERT_GE(words.size(), 8u) << lines[i + 1];
    EXPECT_EQ(words[0], entry.name);
    EXPECT_EQ(words[1], std::to_string(entry.spec.Bits()));
    EXPECT_EQ(words[2], std::to_string(entry.spec.exponent_bits));
    EXPECT_EQ(words[3], std::to_string(entry.spec.mantissa_bits));
    EXPECT_EQ(words[4], std::to_string(entry.spec.bias));
    EXPECT_EQ(ValueOf(words[7]), MinPositive(entry.spec)) << entry.name;
  }
}

TEST_F(FormatsCommand, TellsE4M3FromTheFormatOfPapers) {
  const char* const note = "e4m3 ends at 240; OCP E4M3 of papers is e4m3fn";
  EXPECT_THAT(Output("formats"), HasSubstr(note));
  EXPECT_THAT(Output("formats e4m3"), HasSubstr(note));
  EXPECT_THAT(Output("formats e4m3:bias=7"), HasSubstr(note));  // the same format
  EXPECT_THAT(Output("formats e4m3fn"), Not(HasSubstr(note)));
  EXPECT_EQ(MaxFinite(FindFormat("e4m3")->spec), 240);
}

TEST_F(FormatsCommand, ListsEveryNanCode) {
  // Hand-typed, from the formats' specifications.
  const std::pair<const char*, const char*> cases[] = {{"e4m3fn", "0x7F 0xFF"},
                                                       {"e5m2", "0x7D..0x7F 0xFD..0xFF"},
                                                       {"e4m3fnuz", "0x80"},
                                                       {"e8m0fnu", "0xFF"},
                                                       {"e2m1fn", "none"},
                                                       {"binary8p4se", "0x80"},
                                                       {"bf16", "0x7F81..0x7FFF 0xFF81..0xFFFF"}};
  for (const auto& [name, codes] : cases) {
    const Json json = Json::parse(Output(fmt::format("formats {} --json", name)));
    EXPECT_EQ(json.at("nan_codes"), codes) << name;
    EXPECT_THAT(Output(fmt::format("formats {}", name)), HasSubstr(codes)) << name;
  }
}

TEST_F(FormatsCommand, TableShowsWholeCodes) {
  const std::vector<std::string> lines = Numsim("formats").Lines();
  ASSERT_GT(lines.size(), FormatTable().size());
  for (size_t i = 0; i < FormatTable().size(); ++i) {
    const FormatSpec& f = FormatTable()[i].spec;
    std::vector<uint32_t> codes;
    if (f.HasInfinity()) codes.push_back(f.InfinityCode() | f.SignBit());
    if (f.HasNan()) codes.push_back(f.NanCode() | (f.NanHasSign() ? f.SignBit() : 0));
    for (const uint32_t code : codes) {
      const std::string text = fmt::format(" 0x{:0{}X} ", code, (f.Bits() + 3) / 4);
      EXPECT_THAT(lines[i + 1], HasSubstr(text));
    }
  }
}

TEST_F(FormatsCommand, JsonTableEqualsTheLibrary) {
  const Json table = Json::parse(Output("formats --json"));
  ASSERT_EQ(table.size(), FormatTable().size());
  for (size_t i = 0; i < table.size(); ++i) {
    const FormatEntry& entry = FormatTable()[i];
    EXPECT_EQ(table[i].at("name"), entry.name);
    EXPECT_EQ(table[i].at("bits"), entry.spec.Bits());
    EXPECT_EQ(table[i].at("bias"), entry.spec.bias);
    EXPECT_EQ(table[i].at("max").get<float>(), MaxFinite(entry.spec)) << entry.name;
    EXPECT_EQ(table[i].at("min_normal").get<float>(), MinNormal(entry.spec)) << entry.name;
    EXPECT_EQ(table[i].at("min_positive").get<float>(), MinPositive(entry.spec)) << entry.name;
    EXPECT_EQ(table[i].at("source"), entry.source);
  }
}

void ExpectCodes(const Json& codes, const FormatSpec& format, const std::string& name) {
  const std::vector<float> values = DecodeTable(format);
  ASSERT_EQ(codes.size(), values.size()) << name;
  for (size_t code = 0; code < values.size(); ++code) {
    const Json& item = codes[code];
    EXPECT_EQ(item.at("code"), code);
    const Json& value = item.at("value");
    const float read = value.is_string() ? ValueOf(value.get<std::string>()) : value.get<float>();
    ExpectSameValue(read, values[code], fmt::format("{} code {:#x}", name, code));
  }
}

TEST_F(FormatsCommand, JsonOfOneFormatHasEveryCode) {
  for (const char* const name : {"e4m3fn", "e5m2", "e4m3fnuz", "e2m1fn", "binary8p3ue", "int8"}) {
    const Json json = Json::parse(Output(fmt::format("formats {} --json", name)));
    EXPECT_EQ(json.at("name"), name);
    ExpectCodes(json.at("codes"), FindFormat(name)->spec, name);
  }
}

TEST_F(FormatsCommand, TextOfOneFormatHasEveryCode) {
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  const std::vector<float> values = DecodeTable(format);
  std::vector<bool> seen(256, false);
  for (const std::string& line : Numsim("formats e4m3fn").Lines()) {
    if (!line.starts_with("0x")) continue;
    // A column is CODE SIGN EXPONENT MANTISSA VALUE.
    const std::vector<std::string> words = Words(line);
    ASSERT_EQ(words.size() % 5, 0u) << line;
    for (size_t i = 0; i < words.size(); i += 5) {
      const auto code = static_cast<uint32_t>(std::stoul(words[i], nullptr, 16));
      ASSERT_LT(code, 256u);
      seen[code] = true;
      const std::string bits = words[i + 1] + words[i + 2] + words[i + 3];
      EXPECT_EQ(std::stoul(bits, nullptr, 2), code);
      ExpectSameValue(ValueOf(words[i + 4]), values[code], words[i]);
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 256);
}

TEST_F(FormatsCommand, CustomFormatByItsText) {
  for (const char* const text : {"e3m3:bias=5,inf=none,nan=all-ones",
                                 "ue4m2:inf=top,nan=all-ones",
                                 "e4m3:inf=none,nan=all-ones,overflow=max",
                                 "e2m2"}) {
    const Json json = Json::parse(Output(fmt::format("formats {} --json", text)));
    EXPECT_EQ(json.at("name"), text);
    EXPECT_EQ(json.at("source"), "custom");
    ExpectCodes(json.at("codes"), ParseFormat(text).spec, text);
  }
}

TEST_F(FormatsCommand, CustomTextOfATableFormatIsThatFormat) {
  const Json json = Json::parse(Output("formats e4m3:inf=none,nan=all-ones --json"));
  EXPECT_EQ(json.at("name"), "e4m3fn");
}

TEST_F(FormatsCommand, KeysGoAfterATableName) {
  const Json json = Json::parse(Output("formats e4m3fn:overflow=max --json"));
  EXPECT_EQ(json.at("name"), "e4m3:inf=none,nan=all-ones,overflow=max");
  EXPECT_EQ(json.at("overflow_nonsaturate"), "largest value");
}

TEST_F(FormatsCommand, WideFormatsListNoCodes) {
  EXPECT_FALSE(Json::parse(Output("formats bf16 --json")).contains("codes"));
  EXPECT_THAT(Output("formats bf16"), Not(HasSubstr("every code")));
}

}  // namespace
}  // namespace numsim::apps
