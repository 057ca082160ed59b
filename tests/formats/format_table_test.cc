// The table and the meaning of every code, against the literature and the independent oracle.
#include "numsim/formats/format_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>

#include "numsim/formats/decode.h"
#include "tests/reference/format_param.h"
#include "tests/reference/oracle.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using oracle::Format;
using oracle::Grid;
using oracle::Real;

constexpr uint32_t kNo = oracle::kNoCode;

// The facts that the sources of docs/references.md print about a format.
struct Facts {
  const char* name;
  int bits;
  double max;
  uint32_t max_code;
  double min_normal;
  double min_positive;
  uint32_t infinity;  // kNo: none
  uint32_t nan;       // canonical, sign clear; kNo: none
  bool negative_zero;
};

// clang-format off
const Facts kFacts[] = {
    {"fp32", 32, 0x1.FFFFFEp127, 0x7F7FFFFF, 0x1p-126, 0x1p-149, 0x7F800000, 0x7FC00000, true},
    {"tf32", 19, 0x1.FFCp127, 0x3FBFF, 0x1p-126, 0x1p-136, 0x3FC00, 0x3FE00, true},
    {"bf16", 16, 0x1.FEp127, 0x7F7F, 0x1p-126, 0x1p-133, 0x7F80, 0x7FC0, true},
    {"fp16", 16, 65504, 0x7BFF, 0x1p-14, 0x1p-24, 0x7C00, 0x7E00, true},
    {"e5m2", 8, 57344, 0x7B, 0x1p-14, 0x1p-16, 0x7C, 0x7E, true},
    {"e4m3fn", 8, 448, 0x7E, 0x1p-6, 0x1p-9, kNo, 0x7F, true},
    {"e4m3", 8, 240, 0x77, 0x1p-6, 0x1p-9, 0x78, 0x7C, true},
    {"e3m4", 8, 15.5, 0x6F, 0.25, 0x1p-6, 0x70, 0x78, true},
    {"e4m3fnuz", 8, 240, 0x7F, 0x1p-7, 0x1p-10, kNo, 0x80, false},
    {"e5m2fnuz", 8, 57344, 0x7F, 0x1p-15, 0x1p-17, kNo, 0x80, false},
    {"e4m3b11fnuz", 8, 30, 0x7F, 0x1p-10, 0x1p-13, kNo, 0x80, false},
    {"e8m0fnu", 8, 0x1p127, 0xFE, 0x1p-127, 0x1p-127, kNo, 0xFF, false},
    {"ue4m3fn", 7, 448, 0x7E, 0x1p-6, 0x1p-9, kNo, 0x7F, false},
    {"e3m2fn", 6, 28, 0x1F, 0.25, 0.0625, kNo, kNo, true},
    {"e2m3fn", 6, 7.5, 0x1F, 1, 0.125, kNo, kNo, true},
    {"e2m1fn", 4, 6, 0x7, 1, 0.5, kNo, kNo, true},
    {"bnb-e4m3", 8, 480, 0x7F, 0x1p-6, 0x1p-11, kNo, kNo, true},
    {"bnb-e5m2", 8, 114688, 0x7F, 0x1p-14, 0x1p-18, kNo, kNo, true},
    {"qpytorch-e4m3", 8, 480, 0x7F, 0x1p-6, 0x1p-9, kNo, kNo, true},
    {"qpytorch-e5m2", 8, 114688, 0x7F, 0x1p-14, 0x1p-16, kNo, kNo, true},
    {"int8", 8, 127, 0x7F, 64, 1, kNo, kNo, false},
    {"e1m2fn", 4, 3.5, 0x7, 2, 0.5, kNo, kNo, true},
    // The "smallest normal" of integers is the top half of their positive numbers.
    {"int4", 4, 7, 0x7, 4, 1, kNo, kNo, false},
    {"int2", 2, 1, 0x1, 1, 1, kNo, kNo, false},
    {"uint8", 8, 255, 0xFF, 128, 1, kNo, kNo, false},
    {"uint4", 4, 15, 0xF, 8, 1, kNo, kNo, false},
    {"uint2", 2, 3, 0x3, 2, 1, kNo, kNo, false},
    // [P3109] signed: precision, bias 2^(7-P), 0x80 is NaN, extended formats end in infinity.
    {"binary8p1se", 8, 0x1p62, 0x7E, 0x1p-63, 0x1p-63, 0x7F, 0x80, false},
    {"binary8p2se", 8, 0x1p31, 0x7E, 0x1p-31, 0x1p-32, 0x7F, 0x80, false},
    {"binary8p3se", 8, 49152, 0x7E, 0x1p-15, 0x1p-17, 0x7F, 0x80, false},
    {"binary8p4se", 8, 224, 0x7E, 0x1p-7, 0x1p-10, 0x7F, 0x80, false},
    {"binary8p5se", 8, 15, 0x7E, 0x1p-3, 0x1p-7, 0x7F, 0x80, false},
    {"binary8p6se", 8, 3.875, 0x7E, 0.5, 0x1p-6, 0x7F, 0x80, false},
    {"binary8p7se", 8, 1.96875, 0x7E, 1, 0x1p-6, 0x7F, 0x80, false},
    {"binary8p1sf", 8, 0x1p63, 0x7F, 0x1p-63, 0x1p-63, kNo, 0x80, false},
    {"binary8p2sf", 8, 0x1.8p31, 0x7F, 0x1p-31, 0x1p-32, kNo, 0x80, false},
    {"binary8p3sf", 8, 57344, 0x7F, 0x1p-15, 0x1p-17, kNo, 0x80, false},
    {"binary8p4sf", 8, 240, 0x7F, 0x1p-7, 0x1p-10, kNo, 0x80, false},
    {"binary8p5sf", 8, 15.5, 0x7F, 0x1p-3, 0x1p-7, kNo, 0x80, false},
    {"binary8p6sf", 8, 3.9375, 0x7F, 0.5, 0x1p-6, kNo, 0x80, false},
    {"binary8p7sf", 8, 1.984375, 0x7F, 1, 0x1p-6, kNo, 0x80, false},
    // [P3109] unsigned: bias 2^(8-P), 0xFF is NaN.
    {"binary8p1ue", 8, 0x1p125, 0xFD, 0x1p-127, 0x1p-127, 0xFE, 0xFF, false},
    {"binary8p2ue", 8, 0x1.8p62, 0xFD, 0x1p-63, 0x1p-64, 0xFE, 0xFF, false},
    {"binary8p3ue", 8, 0x1.4p31, 0xFD, 0x1p-31, 0x1p-33, 0xFE, 0xFF, false},
    {"binary8p4ue", 8, 53248, 0xFD, 0x1p-15, 0x1p-18, 0xFE, 0xFF, false},
    {"binary8p5ue", 8, 232, 0xFD, 0x1p-7, 0x1p-11, 0xFE, 0xFF, false},
    {"binary8p6ue", 8, 15.25, 0xFD, 0x1p-3, 0x1p-8, 0xFE, 0xFF, false},
    {"binary8p7ue", 8, 3.90625, 0xFD, 0.5, 0x1p-7, 0xFE, 0xFF, false},
    {"binary8p8ue", 8, 1.9765625, 0xFD, 1, 0x1p-7, 0xFE, 0xFF, false},
    {"binary8p1uf", 8, 0x1p126, 0xFE, 0x1p-127, 0x1p-127, kNo, 0xFF, false},
    {"binary8p2uf", 8, 0x1p63, 0xFE, 0x1p-63, 0x1p-64, kNo, 0xFF, false},
    {"binary8p3uf", 8, 0x1.8p31, 0xFE, 0x1p-31, 0x1p-33, kNo, 0xFF, false},
    {"binary8p4uf", 8, 57344, 0xFE, 0x1p-15, 0x1p-18, kNo, 0xFF, false},
    {"binary8p5uf", 8, 240, 0xFE, 0x1p-7, 0x1p-11, kNo, 0xFF, false},
    {"binary8p6uf", 8, 15.5, 0xFE, 0x1p-3, 0x1p-8, kNo, 0xFF, false},
    {"binary8p7uf", 8, 3.9375, 0xFE, 0.5, 0x1p-7, kNo, 0xFF, false},
    {"binary8p8uf", 8, 1.984375, 0xFE, 1, 0x1p-7, kNo, 0xFF, false},
    {"binary4p2sf", 4, 3, 0x7, 0.5, 0.25, kNo, 0x8, false},
};
// clang-format on

TEST(FormatTable, HoldsExactlyTheFormatsOfTheLiterature) {
  std::set<std::string> expected;
  for (const Facts& facts : kFacts) expected.insert(facts.name);
  std::set<std::string> got;
  for (const FormatEntry& entry : FormatTable()) got.insert(std::string(entry.name));
  EXPECT_EQ(got, expected);
  EXPECT_EQ(FormatTable().size(), expected.size()) << "a name occurs twice";
}

TEST(FormatTable, OracleListsTheSameFormats) {
  std::set<std::string> listed;
  for (const Format& format : oracle::NamedFormats()) listed.insert(format.name);
  EXPECT_EQ(listed.size(), FormatTable().size());
  for (const FormatEntry& entry : FormatTable()) {
    EXPECT_TRUE(listed.contains(std::string(entry.name))) << entry.name;
  }
}

TEST(FormatTable, EntriesHaveTheNumbersOfTheLiterature) {
  for (const Facts& facts : kFacts) {
    SCOPED_TRACE(facts.name);
    const FormatEntry* entry = FindFormat(facts.name);
    ASSERT_NE(entry, nullptr);
    const FormatSpec& spec = entry->spec;
    EXPECT_EQ(spec.Bits(), facts.bits);
    EXPECT_EQ(MaxFinite(spec), facts.max);
    EXPECT_EQ(Decode(spec, facts.max_code), facts.max);
    EXPECT_EQ(MinNormal(spec), facts.min_normal);
    EXPECT_EQ(MinPositive(spec), facts.min_positive);
    EXPECT_EQ(spec.HasInfinity(), facts.infinity != kNo);
    if (facts.infinity != kNo) {
      EXPECT_EQ(spec.InfinityCode(), facts.infinity);
    }
    EXPECT_EQ(spec.HasNan(), facts.nan != kNo);
    if (facts.nan != kNo) {
      EXPECT_EQ(spec.NanCode(), facts.nan);
    }
    const uint32_t top_bit = uint32_t{1} << (facts.bits - 1);
    const float top = Decode(spec, top_bit);
    EXPECT_EQ(top == 0 && std::signbit(top), facts.negative_zero);
  }
}

TEST(FormatTable, EntriesAreNamedSourcedAndValid) {
  for (const FormatEntry& entry : FormatTable()) {
    SCOPED_TRACE(entry.name);
    EXPECT_EQ(FindFormat(entry.name), &entry);
    EXPECT_FALSE(entry.source.empty());
    EXPECT_FALSE(entry.note.empty());
    EXPECT_THAT(entry.note, Not(HasSubstr("\n")));
    EXPECT_NO_THROW(ValidateFormat(entry.spec, entry.name));
    for (char c : entry.name) {
      EXPECT_TRUE((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-') << c;
    }
  }
  EXPECT_EQ(FindFormat("E4M3FN"), nullptr);
  EXPECT_EQ(FindFormat(""), nullptr);
}

TEST(FormatTable, NoTwoEntriesAreTheSameFormat) {
  for (const FormatEntry& a : FormatTable()) {
    for (const FormatEntry& b : FormatTable()) {
      if (&a != &b) {
        EXPECT_FALSE(a.spec == b.spec) << a.name << " and " << b.name;
      }
    }
  }
}

class DecodeEveryFormat : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(,
                         DecodeEveryFormat,
                         testing::ValuesIn(oracle::AllFormats().begin(),
                                           oracle::AllFormats().end()),
                         oracle::ParamName);

// All codes of up to 19 bits, a few million of wider ones.
uint32_t CodeStride(const Format& format) { return format.bits <= 19 ? 1 : 1021; }

TEST_P(DecodeEveryFormat, GivesTheExactValueOfEveryCode) {
  const Format& f = GetParam();
  const Grid grid(f);
  const FormatSpec spec = ParseFormat(f.name).spec;
  ASSERT_EQ(spec.Bits(), f.bits);
  const uint64_t codes = uint64_t{1} << f.bits;
  for (uint64_t code = 0; code < codes; code += CodeStride(f)) {
    const Real expected = oracle::DecodeCode(grid, static_cast<uint32_t>(code));
    const float got = Decode(spec, static_cast<uint32_t>(code));
    if (expected.kind == Real::Kind::kNan) {
      ASSERT_TRUE(std::isnan(got)) << "code " << code;
      ASSERT_TRUE(std::bit_cast<uint32_t>(got) & 0x00400000u) << "signalling, code " << code;
    } else if (expected.kind == Real::Kind::kInfinity) {
      ASSERT_TRUE(std::isinf(got)) << "code " << code;
    } else if (expected.kind == Real::Kind::kUnused) {
      ASSERT_EQ(got, -static_cast<float>(grid.Value(grid.end()))) << "code " << code;
    } else {
      ASSERT_EQ(std::fabs(static_cast<double>(got)), expected.magnitude) << "code " << code;
    }
    ASSERT_EQ(std::signbit(got), expected.negative) << "code " << code;
  }
}

ValueClass ExpectedClass(const Format& f, const Real& x) {
  switch (x.kind) {
    case Real::Kind::kNan:
      return ValueClass::kNan;
    case Real::Kind::kInfinity:
      return ValueClass::kInfinity;
    case Real::Kind::kUnused:
      return ValueClass::kUnused;
    case Real::Kind::kFinite:
      break;
  }
  if (x.magnitude == 0) return ValueClass::kZero;
  double min_normal = std::ldexp(1.0, f.has_zero ? 1 - f.bias : -f.bias);
  // Fixed point has no exponent. The library calls the upper half of its positive numbers normal.
  if (oracle::IsFixedPoint(f)) min_normal = Grid(f).Value((int64_t{f.max_code} + 1) / 2);
  return x.magnitude < min_normal ? ValueClass::kSubnormal : ValueClass::kNormal;
}

TEST_P(DecodeEveryFormat, ClassifyAgrees) {
  const Format& f = GetParam();
  const Grid grid(f);
  const FormatSpec spec = ParseFormat(f.name).spec;
  const uint64_t codes = uint64_t{1} << f.bits;
  for (uint64_t code = 0; code < codes; code += CodeStride(f)) {
    const Real x = oracle::DecodeCode(grid, static_cast<uint32_t>(code));
    ASSERT_EQ(Classify(spec, static_cast<uint32_t>(code)), ExpectedClass(f, x)) << "code " << code;
  }
}

TEST_P(DecodeEveryFormat, TableEqualsDecode) {
  const FormatSpec spec = ParseFormat(GetParam().name).spec;
  if (spec.Bits() > 16) GTEST_SKIP() << "DecodeTable requires at most 16 bits";
  const std::vector<float> table = DecodeTable(spec);
  ASSERT_EQ(table.size(), size_t{1} << spec.Bits());
  for (uint32_t code = 0; code < table.size(); ++code) {
    ASSERT_EQ(std::bit_cast<uint32_t>(table[code]), std::bit_cast<uint32_t>(Decode(spec, code)))
        << "code " << code;
  }
}

TEST_P(DecodeEveryFormat, MagnitudeValueIsExact) {
  const Format& f = GetParam();
  const Grid grid(f);
  const FormatSpec spec = ParseFormat(f.name).spec;
  for (uint64_t code = 0; code <= f.max_code; code += CodeStride(f)) {
    const Dyadic value = MagnitudeValue(spec, static_cast<uint32_t>(code));
    const bool flushed = f.flushes && code < uint64_t{1} << f.mantissa_bits;
    ASSERT_EQ(std::ldexp(value.significand, value.exponent), flushed ? 0 : grid.Value(code))
        << "code " << code;
  }
}

// The three extremes of a format, also of the custom ones that the literature does not list.
TEST_P(DecodeEveryFormat, ExtremesAreThoseOfTheListOfValues) {
  const Format& f = GetParam();
  const Grid grid(f);
  const FormatSpec spec = ParseFormat(f.name).spec;
  EXPECT_EQ(MaxFinite(spec), grid.Value(f.max_code));
  const int64_t first = f.flushes ? int64_t{1} << f.mantissa_bits : 1;
  EXPECT_EQ(MinPositive(spec), grid.Value(f.has_zero ? first : 0));
  EXPECT_EQ(spec.MaxFiniteCode(), f.max_code);
  if (f.infinity != kNo) {
    EXPECT_EQ(spec.InfinityCode(), f.infinity);
  }
  if (f.nan_plus != kNo) {
    EXPECT_EQ(spec.NanCode(), f.nan_plus);
  }
  EXPECT_EQ(spec.MaxExponent(), std::ilogb(grid.Value(f.max_code)));
}

}  // namespace
}  // namespace numsim
