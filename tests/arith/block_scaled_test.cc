// Sums of block-scaled units against exact numbers (tests/reference/accumulate.h), and cases worked by
// hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_table.h"
#include "tests/arith/judged_modes.h"
#include "tests/support/dot_operands.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr FormatSpec kUe4m3fn = NamedFormat("ue4m3fn");

AccumulationMode Mode(const char* name) { return ParseAccumulationMode(name); }

// How the scales of blocks are distributed.
enum class ScaleSpread { kNearOne, kAllCodes, kFarApart };
constexpr ScaleSpread kScaleSpreads[] = {
    ScaleSpread::kNearOne, ScaleSpread::kAllCodes, ScaleSpread::kFarApart};

float RandomUnitScale(const FormatSpec& format, ScaleSpread spread, oracle::TestRandom& random) {
  switch (spread) {
    case ScaleSpread::kNearOne:
      return Decode(
          format,
          Encode(format,
                 std::ldexp(1 + UnitRandom(random), static_cast<int>(random.Below(8)) - 4),
                 {},
                 Overflow::kSaturate));
    case ScaleSpread::kAllCodes: {
      uint32_t code = random.Next32() & format.CodeMask();
      // A NaN makes the whole sum NaN: keep few of them.
      if (!IsFiniteCode(format, code) && random.Below(8) != 0) code = 1;
      return Decode(format, code);
    }
    case ScaleSpread::kFarApart: {
      const uint32_t codes[] = {0, 1, format.MaxFiniteCode(), format.MaxFiniteCode() / 2};
      return Decode(format, codes[random.Below(4)]);
    }
  }
  return 1;
}

struct ScaledVector {
  FormatSpec format;
  std::vector<float> values, scales;
  size_t block = 0;

  DotOperand Operand() const { return {format, values, {scales, block}}; }
  oracle::ScaledSide Side() const { return {{values, format.MinExponent()}, scales, block}; }
};

ScaledVector RandomVector(const AccumulationMode& mode,
                          const FormatSpec& format,
                          Spread spread,
                          Side side,
                          ScaleSpread scales,
                          size_t length,
                          size_t block,
                          oracle::TestRandom& random) {
  ScaledVector x{
      format, ValuesOf(format, SpreadCodes(format, spread, side, length, random)), {}, block};
  const size_t count = block == 0 ? 1 : length / block + 1;
  for (size_t i = 0; i < count; ++i) {
    x.scales.push_back(RandomUnitScale(mode.format, scales, random));
  }
  return x;
}

std::string Listing(const ScaledVector& a, const ScaledVector& b) {
  std::string text;
  for (size_t k = 0; k < std::min<size_t>(a.values.size(), 130); ++k) {
    text += fmt::format("{:a} * {:a}\n", a.values[k], b.values[k]);
  }
  for (const ScaledVector* x : {&a, &b}) {
    text += fmt::format("block {}:", x->block);
    for (const float s : x->scales) text += fmt::format(" {:a}", s);
    text += "\n";
  }
  return text;
}

struct UnitCase {
  const char* mode;
  oracle::ScaledUnit unit;
  std::vector<FormatSpec> formats;
};

void PrintTo(const UnitCase& unit, std::ostream* os) { *os << unit.mode; }

class BlockScaledUnits : public testing::TestWithParam<UnitCase> {};

TEST_P(BlockScaledUnits, SumAsExactNumbersSay) {
  const UnitCase& c = GetParam();
  const AccumulationMode mode = Mode(c.mode);
  const auto least = static_cast<size_t>(LeastBlock(mode));
  constexpr size_t kLengths[] = {0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 200};
  oracle::TestRandom random(20261129);
  size_t sums = 0, zeros = 0, special = 0;
  for (const FormatSpec& fa : c.formats) {
    for (const FormatSpec& fb : c.formats) {
      for (const Spread spread : kSpreads) {
        for (const ScaleSpread scales : kScaleSpreads) {
          for (const size_t length : kLengths) {
            const size_t block = least * random.Below(3);
            const ScaledVector a =
                RandomVector(mode, fa, spread, Side::kLeft, scales, length, block, random);
            const ScaledVector b =
                RandomVector(mode, fb, spread, Side::kRight, scales, length, block, random);
            const double got = ValueOf(Accumulate(mode, a.Operand(), b.Operand()));
            const double want = oracle::BlockScaledDot(a.Side(), b.Side(), c.unit);
            ASSERT_TRUE(Same(got, want))
                << ToString(fa) << " " << ToString(fb) << " " << testing::PrintToString(spread)
                << fmt::format(": {:a}, not {:a}\n", got, want) << Listing(a, b);
            ++sums;
            zeros += got == 0 ? 1 : 0;
            special += std::isfinite(got) ? 0 : 1;
          }
        }
      }
    }
  }
  // Most of the sums test something.
  EXPECT_LT(zeros, sums / 3);
  EXPECT_LT(special, sums / 2);
  EXPECT_GT(special, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Accumulate,
    BlockScaledUnits,
    testing::Values(
        UnitCase{"mxf8f6f4",
                 {.fraction_bits = 25, .chunk = 32, .group = 0, .scale_min_exponent = -127},
                 {kE4M3fn, kE5M2, kE3M2fn, kE2M3fn, kE2M1fn}},
        UnitCase{"mxf4",
                 {.fraction_bits = 35, .chunk = 64, .group = 16, .scale_min_exponent = -127},
                 {kE2M1fn, kE2M1fn, kE2M1fn, kE2M1fn}},
        UnitCase{"mxf4nvf4",
                 {.fraction_bits = 35, .chunk = 64, .group = 16, .scale_min_exponent = -6},
                 {kE2M1fn, kE2M1fn, kE2M1fn, kE2M1fn}}),
    [](const testing::TestParamInfo<UnitCase>& param) { return std::string(param.param.mode); });

// --- By hand.

// `count` elements of each value and, per block, a scale.
ScaledVector Vector(const FormatSpec& format,
                    std::vector<float> values,
                    std::vector<float> scales,
                    size_t block) {
  return {format, std::move(values), std::move(scales), block};
}

double Sum(const char* mode, const ScaledVector& a, const ScaledVector& b) {
  return ValueOf(Accumulate(Mode(mode), a.Operand(), b.Operand()));
}

// Returns 16 elements whose products with ones are the given ones; the rest are zeros.
void AppendGroup(std::vector<float>& to, std::vector<float> products) {
  products.resize(16);
  to.insert(to.end(), products.begin(), products.end());
}

TEST(BlockScaled, EveryScaleEntersOnce) {
  const ScaledVector a = Vector(kE4M3fn, std::vector<float>(96, 1.5f), {2, 4, 0.25f}, 32);
  const ScaledVector b = Vector(kE4M3fn, std::vector<float>(96, 1), {8, 0.5f, 1}, 32);
  EXPECT_EQ(Sum("mxf8f6f4", a, b), 48 * (16 + 2 + 0.25));
  const ScaledVector c = Vector(kE2M1fn, std::vector<float>(32, 3), {1.125f, 0.875f}, 16);
  const ScaledVector d = Vector(kE2M1fn, std::vector<float>(32, -1), {1.75f, 2}, 16);
  EXPECT_EQ(Sum("mxf4nvf4", c, d), -48 * (1.125 * 1.75 + 0.875 * 2));
}

TEST(BlockScaled, OneScaleServesAVectorAndNoneIsOne) {
  const ScaledVector one = Vector(kE2M1fn, std::vector<float>(70, 1), {4}, 0);
  EXPECT_EQ(Sum("mxf4", one, Vector(kE2M1fn, std::vector<float>(70, 1), {}, 0)), 280);
  EXPECT_EQ(Sum("mxf8f6f4", one, one), 70 * 16);
}

// 25 bits below the largest number of a step are kept, of every product by itself.
TEST(BlockScaled, Mxf8f6f4CutsBelow25Bits) {
  const std::vector<float> ones(64, 1);
  // 1 in the first chunk, so that the second aligns at the accumulator's exponent 0.
  const auto sum = [&](std::vector<float> second, float scale) {
    std::vector<float> values(32, 0);
    values[0] = 1;
    values.insert(values.end(), second.begin(), second.end());
    values.resize(64);
    return Sum(
        "mxf8f6f4", Vector(kE4M3fn, values, {1, scale}, 32), Vector(kE4M3fn, ones, {1, 1}, 32));
  };
  EXPECT_EQ(sum({1, -1.125f}, 0x1p-22f), 1 - 0x1p-24f);  // 1 - 2^-25, cut to 24 bits
  EXPECT_EQ(sum({1, -1.125f}, 0x1p-23f), 1);             // 2^-26 of the second product is lost
  EXPECT_EQ(sum({1, 1}, 0x1p-24f), 1 + 0x1p-23);
  EXPECT_EQ(sum({1, 1}, 0x1p-25f), 1);  // 1 + 2^-24, cut to 24 bits
  EXPECT_EQ(sum({1, 1, 1, 1}, 0x1p-25f), 1 + 0x1p-23);
  EXPECT_EQ(sum({1, 1, 1, 1, 1, 1, 1, 1}, 0x1p-26f), 1);  // lost one by one
}

// The same four products in a group of the 4-bit units are one exact sum, and 35 bits are kept.
TEST(BlockScaled, Mxf4AddsAGroupBeforeItIsCut) {
  std::vector<float> ones(128, 1), values(128, 0);
  values[0] = 1;
  for (size_t k = 64; k < 72; ++k) values[k] = 0.5f;
  const auto sum = [&](const std::vector<float>& x, float scale) {
    return Sum("mxf4", Vector(kE2M1fn, x, {1, 1, scale, 1}, 32), Vector(kE2M1fn, ones, {}, 0));
  };
  EXPECT_EQ(sum(values, 0x1p-25f), 1 + 0x1p-23);
  EXPECT_EQ(sum(values, 0x1p-26f), 1);
  // The first chunk is cut to float32; -2^-37 of the second is not seen below 2^-35.
  values[64] = -0.5f;
  for (size_t k = 65; k < 72; ++k) values[k] = 0;
  EXPECT_EQ(sum(values, 0x1p-34f), 1 - 0x1p-24);  // 1 - 2^-35 is cut to 24 bits
  EXPECT_EQ(sum(values, 0x1p-35f), 1);
}

// A sum of zero has the exponent of its scales; scales of zero have none.
TEST(BlockScaled, AGroupOfSumZeroTakesPartByItsScales) {
  std::vector<float> values(64, 0), ones(64, 1);
  values[0] = 1;
  values[16] = 1;
  values[17] = -1;
  const auto sum = [&](float scale) {
    return Sum("mxf4", Vector(kE2M1fn, values, {1, scale, 1, 1}, 16), Vector(kE2M1fn, ones, {}, 0));
  };
  EXPECT_EQ(sum(0x1p35f), 1);
  EXPECT_EQ(sum(0x1p36f), 0);
  EXPECT_EQ(Sum("mxf8f6f4", Vector(kE2M1fn, {1, 0}, {1}, 0), Vector(kE2M1fn, {1, 6}, {1}, 0)), 1)
      << "a product of zero has no exponent";
  values[16] = values[17] = 1;
  EXPECT_EQ(Sum("mxf4nvf4",
                Vector(kE2M1fn, values, {0x1p-9f, 0, 1, 1}, 16),
                Vector(kE2M1fn, ones, {0x1p-9f, 448, 1, 1}, 16)),
            0x1p-18);
}

// Scales of ue4m3fn below 2^-6 have the exponent -6, so that 2^-9 times 2^-9 is aligned at -12, and
// what 2^-12 stands beside is cut below 2^(-12 - 35) at least.
TEST(BlockScaled, SubnormalScalesHaveTheLeastExponent) {
  // One product of 1 in the first group of each of two chunks, with the scales s and t on both sides.
  const auto sum = [](float s, float t) {
    std::vector<float> values(128, 0);
    values[0] = values[64] = 1;
    const ScaledVector x = Vector(kE2M1fn, values, {s, 0, 0, 0, t, 0, 0, 0}, 16);
    return Sum("mxf4nvf4", x, x);
  };
  EXPECT_EQ(sum(0x1p-9f, 0x1p-9f), 0x1p-17);
  // 2^-18 beside 2^16: 16 - 35 keeps it, the 24 bits of float32 do not.
  EXPECT_EQ(sum(256, 0x1p-9f), 65536);
  EXPECT_EQ(sum(0x1p-9f, 256), 65536);
  // Groups of sum zero show the exponent: 2^-18 of one group is cut where another has 2^18 or more,
  // which no scales have; with scales of e8m0fnu, 2^-18 aligns at -18.
  std::vector<float> values(64, 0), ones(64, 1);
  values[0] = 1;
  values[16] = 1;
  values[17] = -1;
  EXPECT_EQ(Sum("mxf4nvf4",
                Vector(kE2M1fn, values, {0x1p-9f, 448, 0, 0}, 16),
                Vector(kE2M1fn, ones, {0x1p-9f, 448, 0, 0}, 16)),
            0x1p-18);
  EXPECT_EQ(Sum("mxf4",
                Vector(kE2M1fn, values, {0x1p-9f, 0x1p9f, 1, 1}, 16),
                Vector(kE2M1fn, ones, {0x1p-9f, 0x1p8f, 1, 1}, 16)),
            0x1p-18);
  EXPECT_EQ(Sum("mxf4",
                Vector(kE2M1fn, values, {0x1p-9f, 0x1p9f, 1, 1}, 16),
                Vector(kE2M1fn, ones, {0x1p-9f, 0x1p9f, 1, 1}, 16)),
            0);
}

TEST(BlockScaled, NanScalesGiveNanAndNothingElseDoes) {
  for (const char* const mode : {"mxf8f6f4", "mxf4", "mxf4nvf4"}) {
    const size_t block = Mode(mode).chunk == 32 ? 32 : 16;
    std::vector<float> scales(128 / block, 1);
    const ScaledVector b = Vector(kE2M1fn, std::vector<float>(128, 1), scales, block);
    for (const size_t at : {size_t{0}, scales.size() - 1}) {
      std::vector<float> with = scales;
      with[at] = kNaN;
      EXPECT_TRUE(
          Same(Sum(mode, Vector(kE2M1fn, std::vector<float>(128, 0), with, block), b), kNaN))
          << mode << " even of zeros";
    }
    EXPECT_EQ(Sum(mode, b, b), 128);
  }
  EXPECT_EQ(Sum("mxf8f6f4", Vector(kE5M2, {kInf, 1}, {2}, 0), Vector(kE5M2, {-1, 1}, {2}, 0)),
            -kInf);
  EXPECT_TRUE(
      Same(Sum("mxf8f6f4", Vector(kE5M2, {kInf, 1}, {2}, 0), Vector(kE5M2, {0, 1}, {2}, 0)), kNaN));
}

TEST(BlockScaled, BeyondFloat32IsInfinityAndStaysSo) {
  for (const char* const mode : {"mxf8f6f4", "mxf4"}) {
    std::vector<float> ones(128, 1);
    const ScaledVector a = Vector(kE2M1fn, ones, {0x1p127f, 1, 1, 1}, 32);
    const ScaledVector b = Vector(kE2M1fn, ones, {2, 1, 1, 1}, 32);
    EXPECT_EQ(Sum(mode, a, b), kInf) << mode;
    const ScaledVector c = Vector(kE2M1fn, std::vector<float>(128, -1), {0x1p127f, 1, 1, 1}, 32);
    EXPECT_EQ(Sum(mode, c, b), -kInf) << mode;
    // Within a chunk, what cancels never overflows.
    std::vector<float> signs(32, 1);
    for (size_t k = 0; k < 16; ++k) signs[2 * k] = -1;
    EXPECT_EQ(Sum(mode,
                  Vector(kE2M1fn, signs, {0x1p127f}, 0),
                  Vector(kE2M1fn, std::vector<float>(32, 1), {0x1p127f}, 0)),
              0)
        << mode;
  }
}

// The groups are 2025, 2048, 2064 and 2055 times 2^-162, which add up to 2^-149. With a least exponent
// of -133, that of an H200's units, nothing is cut; with -126, as [MMA-Sim] has it, the odd ones would
// be cut to multiples of 2^-161, and 8190 times 2^-162 is below every float32.
TEST(BlockScaled, TheLeastExponentIsThatOfTheMeasuredUnits) {
  std::vector<float> a, b;
  for (const std::vector<std::pair<float, float>>& rest :
       {std::vector<std::pair<float, float>>{{1.5f, 1.5f}},
        {{4, 2}},
        {{6, 2}},
        {{6, 1.5f}, {1.5f, 0.5f}}}) {
    std::vector<float> left(14, 6), right(14, 6);
    for (const auto& [x, y] : rest) {
      left.push_back(x);
      right.push_back(y);
    }
    AppendGroup(a, left);
    AppendGroup(b, right);
  }
  EXPECT_EQ(Sum("mxf4", Vector(kE2M1fn, a, {0x1p-80f}, 0), Vector(kE2M1fn, b, {0x1p-80f}, 0)),
            0x1p-149);
  // Without one quarter of 2^-160 the sum is below 2^-149 and is cut to +0.
  a[15] = 0;
  EXPECT_TRUE(Same(
      Sum("mxf4", Vector(kE2M1fn, a, {0x1p-80f}, 0), Vector(kE2M1fn, b, {0x1p-80f}, 0)), 0x1p-149));
}

// A short last chunk and a short last group are those of the products that are there.
TEST(BlockScaled, WhatIsNotThereDoesNotCount) {
  for (const char* const mode : {"mxf8f6f4", "mxf4", "mxf4nvf4"}) {
    const auto block = static_cast<size_t>(LeastBlock(Mode(mode)));
    for (const size_t n : {1, 17, 33, 65, 127}) {
      const std::vector<float> scales(n / block + 1, 2);
      const ScaledVector x = Vector(kE2M1fn, std::vector<float>(n, 1), scales, block);
      EXPECT_EQ(Sum(mode, x, x), 4.0 * static_cast<double>(n)) << mode << " " << n;
    }
    EXPECT_TRUE(Same(Sum(mode, Vector(kE2M1fn, {}, {}, 0), Vector(kE2M1fn, {}, {}, 0)), 0.0));
  }
}

TEST(BlockScaled, ModesAreReported) {
  for (const char* const name : {"mxf8f6f4", "mxf4", "mxf4nvf4"}) {
    const AccumulationModeRow* const row = FindAccumulationMode(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_FALSE(row->measured) << name;
    EXPECT_EQ(row->source, "MMA-Sim") << name;
    EXPECT_TRUE(IsBlockScaled(row->mode)) << name;
    EXPECT_EQ(NanResult(row->mode), 0x7FFFFFFFu) << name;
  }
  EXPECT_EQ(DefinitionText(Mode("mxf8f6f4")), "trunc:25,32, scales e8m0fnu");
  EXPECT_EQ(DefinitionText(Mode("mxf4")), "trunc:35,64 of sums of 16, scales e8m0fnu");
  EXPECT_EQ(DefinitionText(Mode("mxf4nvf4")), "trunc:35,64 of sums of 16, scales ue4m3fn");
  EXPECT_EQ(LeastBlock(Mode("mxf8f6f4")), 32);
  EXPECT_EQ(LeastBlock(Mode("mxf4nvf4")), 16);
  EXPECT_EQ(Mode("mxf4nvf4").format, kUe4m3fn);
}

}  // namespace
}  // namespace numsim
