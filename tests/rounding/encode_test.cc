// The scalar conversion against the independent oracle: every format, mode, policy and source.
#include "numsim/rounding/encode.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/reference/oracle.h"
#include "tests/rounding/judge.h"
#include "tests/support/sampling.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

using oracle::Format;
using oracle::Grid;
using oracle::Real;

void CheckLandmarks(EncodeJudge& judge, int64_t stride) {
  for (double x : oracle::Landmarks(judge.grid(), stride)) {
    for (uint32_t bits : oracle::NearF32(x)) judge.CheckF32(bits);
    for (uint64_t bits : oracle::NearF64(x)) judge.CheckF64(bits);
  }
}

// A stride that leaves a few thousand positions: 1 for formats of up to 12 bits.
int64_t SparseStride(const Grid& grid) { return 1 + grid.end() / 2048; }

class EncodeEveryFormat : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(,
                         EncodeEveryFormat,
                         testing::ValuesIn(SampledCases(oracle::AllFormats())),
                         oracle::ParamName);

TEST_P(EncodeEveryFormat, NearestEvenIsRightAroundEveryValueAndTie) {
  EncodeJudge judge(GetParam(), {oracle::Setting{}});
  // fp32 and tf32 are too many to walk in a second.
  const int64_t stride = GetParam().bits <= 16 ? 1 : SparseStride(judge.grid());
  CheckLandmarks(judge, stride);
}

TEST_P(EncodeEveryFormat, DeterministicModesAreRightAroundValuesAndTies) {
  EncodeJudge judge(GetParam(), oracle::DeterministicSettings());
  CheckLandmarks(judge, SparseStride(judge.grid()));
}

TEST_P(EncodeEveryFormat, StochasticRoundingIsRightAroundValuesAndTies) {
  EncodeJudge judge(GetParam(), oracle::StochasticSettings());
  CheckLandmarks(judge, 3 * SparseStride(judge.grid()));
}

TEST_P(EncodeEveryFormat, ZerosSubnormalsInfinitiesNansAndEveryBinadeAreRight) {
  EncodeJudge judge(GetParam(), oracle::AllSettings());
  for (uint32_t bits : oracle::SpecialF32()) judge.CheckF32(bits);
  for (uint64_t bits : oracle::SpecialF64()) judge.CheckF64(bits);
}

TEST_P(EncodeEveryFormat, RandomBitPatternsAreRight) {
  EncodeJudge judge(GetParam(), oracle::AllSettings());
  oracle::TestRandom random(20);
  for (int i = 0; i < 20000; ++i) {
    judge.CheckOneF32(random.Next32(), random.Below(judge.settings()));
    judge.CheckOneF64(random.Next(), random.Below(judge.settings()));
  }
}

// Random bits seldom fall into a narrow format's range; these do.
TEST_P(EncodeEveryFormat, RandomNumbersWithinTheRangeAreRight) {
  EncodeJudge judge(GetParam(), oracle::AllSettings());
  const Grid& grid = judge.grid();
  oracle::TestRandom random(21);
  for (int i = 0; i < 20000; ++i) {
    const double low = grid.Value(random.Below(grid.end()));
    const double x = low + std::ldexp(low, -1 - static_cast<int>(random.Below(30)));
    const uint64_t low_bits = random.Next();
    const uint64_t sign = low_bits & 0x8000000000000000u;
    const uint64_t wide = sign | (std::bit_cast<uint64_t>(x) ^ (low_bits & 0xFFFFFFFu));
    const uint32_t narrow = std::bit_cast<uint32_t>(static_cast<float>(x)) ^ (low_bits & 0xFFu);
    judge.CheckOneF32(static_cast<uint32_t>(sign >> 32) | narrow, random.Below(judge.settings()));
    judge.CheckOneF64(wide, random.Below(judge.settings()));
  }
}

// One setting of the round trip, over all codes.
void CheckRoundTrip(const Grid& grid, const FormatSpec& spec, const oracle::Setting& setting) {
  const EncodePlan plan = MakeEncodePlan(spec, RoundingOf(setting), ToLibrary(setting.policy));
  const Format& f = grid.format();
  for (uint32_t code = 0; code < uint32_t{1} << f.bits; ++code) {
    const Real x = oracle::DecodeCode(grid, code);
    uint32_t expected = code;
    if (x.kind == Real::Kind::kUnused) continue;
    // A flushed subnormal is read as zero.
    if (x.kind == Real::Kind::kFinite && x.magnitude == 0)
      expected = x.negative ? uint32_t{1} << (f.bits - 1) : 0;
    if (x.kind == Real::Kind::kNan) expected = x.negative ? f.nan_minus : f.nan_plus;
    if (x.kind == Real::Kind::kInfinity && setting.policy == oracle::Policy::kSaturate) {
      expected = code - f.infinity + f.max_code;
    }
    const float value = Decode(spec, code);
    const uint64_t wide = std::bit_cast<uint64_t>(static_cast<double>(value));
    ASSERT_EQ(EncodeF32(plan, std::bit_cast<uint32_t>(value), 0xFFFFFFFFu), expected)
        << f.name << " code " << code << " " << oracle::Describe(setting);
    ASSERT_EQ(EncodeF64(plan, wide, 0xFFFFFFFFu), expected)
        << f.name << " code " << code << " " << oracle::Describe(setting) << " from float64";
  }
}

TEST_P(EncodeEveryFormat, EveryCodeReturnsToItself) {
  const Format& f = GetParam();
  if (f.bits > 18) GTEST_SKIP() << "too many codes to visit";
  const Grid grid(f);
  const FormatSpec spec = ParseFormat(f.name).spec;
  for (const oracle::Setting& setting : oracle::DeterministicSettings()) {
    CheckRoundTrip(grid, spec, setting);
  }
  // All random bits set: the word that rounds away whenever anything does.
  for (const oracle::Setting& setting : oracle::StochasticSettings()) {
    if (setting.random_bits == 32) CheckRoundTrip(grid, spec, setting);
  }
}

TEST_P(EncodeEveryFormat, ConveniencesAgreeWithThePlan) {
  const FormatSpec spec = ParseFormat(GetParam().name).spec;
  for (const oracle::Setting& s : oracle::AllSettings()) {
    const Rounding rounding = RoundingOf(s);
    const Overflow overflow = ToLibrary(s.policy);
    const EncodePlan plan = MakeEncodePlan(spec, rounding, overflow);
    for (double x : {0.0, -0.0, 1.3, -2.7e-5, 470.0, 1e30, -1e300}) {
      const auto narrow = static_cast<float>(x);
      const uint32_t word = 0x9E3779B9u;
      EXPECT_EQ(Encode(spec, x, rounding, overflow, word),
                EncodeF64(plan, std::bit_cast<uint64_t>(x), word));
      EXPECT_EQ(Encode(spec, narrow, rounding, overflow, word),
                EncodeF32(plan, std::bit_cast<uint32_t>(narrow), word));
    }
  }
}

// A number that a float32 step on the way would move onto a tie: the value below is even, the
// number lies just above the midpoint, and float32 rounds it to the midpoint.
TEST(EncodeF64, RoundsOnceAndNotThroughFloat32) {
  const FormatSpec bf16 = FindFormat("bf16")->spec;
  const double just_above_tie = 1.0 + 0x1p-8 + 0x1p-40;
  ASSERT_EQ(static_cast<float>(just_above_tie), 1.0f + 0x1p-8f);
  EXPECT_EQ(Encode(bf16, 1.0 + 0x1p-8), 0x3F80u);
  EXPECT_EQ(Encode(bf16, just_above_tie), 0x3F81u);
  EXPECT_EQ(Encode(bf16, 1.0 + 3 * 0x1p-8 - 0x1p-40), 0x3F81u);
  EXPECT_EQ(Encode(FindFormat("e4m3fn")->spec, 464.0 + 0x1p-40), 0x7Fu);
  EXPECT_EQ(Encode(FindFormat("e4m3fn")->spec, 464.0), 0x7Eu);
}

TEST(EncodeF64, Fp32EqualsTheProcessorsConversion) {
  const FormatSpec fp32 = FindFormat("fp32")->spec;
  oracle::TestRandom random(22);
  for (int i = 0; i < 200000; ++i) {
    // A float32 with a double's low bits, so that every case of ties and subnormals occurs.
    const float near = std::bit_cast<float>(random.Next32());
    if (std::isnan(near)) continue;
    const uint64_t noise = random.Below(4) == 0 ? 0 : random.Next() & 0x3FFFFFFF;
    const double x =
        std::bit_cast<double>(std::bit_cast<uint64_t>(static_cast<double>(near)) ^ noise);
    if (std::isnan(x)) continue;
    EXPECT_EQ(Encode(fp32, x), std::bit_cast<uint32_t>(static_cast<float>(x))) << x;
  }
}

TEST(EncodeF32, Fp32ReturnsEveryNumberUnchanged) {
  const FormatSpec fp32 = FindFormat("fp32")->spec;
  oracle::TestRandom random(23);
  for (const oracle::Setting& s : oracle::AllSettings()) {
    const EncodePlan plan = MakeEncodePlan(fp32, RoundingOf(s), ToLibrary(s.policy));
    for (int i = 0; i < 10000; ++i) {
      const uint32_t bits = random.Next32();
      if ((bits & 0x7F800000) == 0x7F800000) continue;
      ASSERT_EQ(EncodeF32(plan, bits, random.Next32()), bits);
    }
  }
}

// The thresholds that the literature quotes (docs/references.md: [OCP-OFP8], [P3109]).
TEST(EncodeF32, OverflowsWhereTheSpecificationsSay) {
  struct Threshold {
    const char* format;
    float below;  // largest float32 that does not overflow under rne
    uint32_t below_code;
    uint32_t above_code;  // nonsaturate
  };
  const Threshold thresholds[] = {
      {"e4m3fn", 464.0f, 0x7E, 0x7F},
      {"e5m2", std::nextafter(61440.0f, 0.0f), 0x7B, 0x7C},
      {"e4m3", std::nextafter(248.0f, 0.0f), 0x77, 0x78},
      {"e3m4", std::nextafter(15.75f, 0.0f), 0x6F, 0x70},
      {"e4m3fnuz", std::nextafter(248.0f, 0.0f), 0x7F, 0x80},
      {"e5m2fnuz", std::nextafter(61440.0f, 0.0f), 0x7F, 0x80},
      {"e4m3b11fnuz", std::nextafter(31.0f, 0.0f), 0x7F, 0x80},
      {"binary8p4se", 232.0f, 0x7E, 0x7F},
      {"binary8p3se", 53248.0f, 0x7E, 0x7F},
      {"fp16", std::nextafter(65520.0f, 0.0f), 0x7BFF, 0x7C00},
  };
  for (const Threshold& t : thresholds) {
    const FormatSpec spec = FindFormat(t.format)->spec;
    const float above = std::nextafter(t.below, INFINITY);
    EXPECT_EQ(Encode(spec, t.below), t.below_code) << t.format;
    EXPECT_EQ(Encode(spec, above), t.above_code) << t.format;
    EXPECT_EQ(Encode(spec, above, {}, Overflow::kSaturate), t.below_code) << t.format;
  }
}

TEST(EncodeF32, TieGoesToEvenCode) {
  const FormatSpec e4m3fn = FindFormat("e4m3fn")->spec;
  EXPECT_EQ(Encode(e4m3fn, 1.0625f), 0x38u);    // between 1 (0x38) and 1.125 (0x39)
  EXPECT_EQ(Encode(e4m3fn, 1.1875f), 0x3Au);    // between 1.125 (0x39) and 1.25 (0x3A)
  EXPECT_EQ(Encode(e4m3fn, 0x1p-10f), 0x00u);   // half the smallest subnormal
  EXPECT_EQ(Encode(e4m3fn, -0x1p-10f), 0x80u);  // keeps its sign
  EXPECT_EQ(Encode(FindFormat("int8")->spec, 2.5f), 0x02u);
  EXPECT_EQ(Encode(FindFormat("int8")->spec, -3.5f), 0xFCu);
}

TEST(EncodeF32, ZeroLosesItsSignOnlyWhereTheFormatHasOneZero) {
  EXPECT_EQ(Encode(FindFormat("e4m3fn")->spec, -0.0f), 0x80u);
  for (const char* name : {"e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "binary8p4se", "int8"}) {
    EXPECT_EQ(Encode(FindFormat(name)->spec, -0.0f), 0u) << name;
    EXPECT_EQ(Encode(FindFormat(name)->spec, -0x1p-60f), 0u) << name;
  }
}

TEST(EncodeF32, E8m0HasNoZeroAndNoSign) {
  const FormatSpec e8m0 = FindFormat("e8m0fnu")->spec;
  EXPECT_EQ(Encode(e8m0, 0.0f), 0x00u);
  EXPECT_EQ(Encode(e8m0, -0.0f), 0x00u);
  EXPECT_EQ(Encode(e8m0, 0x1p-149f), 0x00u);
  EXPECT_EQ(Encode(e8m0, 1.25f * 0x1p-127f), 0x00u);
  EXPECT_EQ(Encode(e8m0, 1.25f), 0x7Fu);
  EXPECT_EQ(Encode(e8m0, 1.5f), 0x80u);  // a tie: 0x80 is even
  EXPECT_EQ(Encode(e8m0, 3.0f), 0x80u);
  EXPECT_EQ(Encode(e8m0, -1.0f), 0xFFu);
  EXPECT_EQ(Encode(e8m0, -1.0f, {}, Overflow::kSaturate), 0x00u);
  EXPECT_EQ(Encode(e8m0, 1.25f, {.mode = RoundingMode::kUp}), 0x80u);
}

TEST(EncodeF32, ReadsRandomBitsAndVariantOnlyUnderStochasticRounding) {
  const FormatSpec e4m3fn = FindFormat("e4m3fn")->spec;
  for (int bits : {0, -1, 33, 1000}) {
    const Rounding rounding = {.mode = RoundingMode::kNearestEven, .random_bits = bits};
    EXPECT_EQ(Encode(e4m3fn, 1.0625f, rounding), 0x38u);
    EXPECT_EQ(Encode(e4m3fn, 1.0625, rounding), 0x38u);
  }
}

TEST(EncodeF32, NanKeepsItsSignWhereTheFormatHasTwo) {
  const float plus = std::bit_cast<float>(0x7F800001u);
  const float minus = std::bit_cast<float>(0xFFFFFFFFu);
  EXPECT_EQ(Encode(FindFormat("e4m3fn")->spec, plus), 0x7Fu);
  EXPECT_EQ(Encode(FindFormat("e4m3fn")->spec, minus), 0xFFu);
  EXPECT_EQ(Encode(FindFormat("e5m2")->spec, minus), 0xFEu);
  EXPECT_EQ(Encode(FindFormat("e4m3fnuz")->spec, plus), 0x80u);
  EXPECT_EQ(Encode(FindFormat("e4m3fnuz")->spec, minus), 0x80u);
  EXPECT_EQ(Encode(FindFormat("e2m1fn")->spec, minus), 0x7u);  // no NaN: the largest value
  EXPECT_EQ(Encode(FindFormat("int8")->spec, minus), 0x7Fu);
}

}  // namespace
}  // namespace numsim
