// Stochastic profiles: exact probabilities by counting every random word, in every binade, and the
// bits of a register that each element reads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>
#include <vector>

#include "numsim/profiles/profile.h"
#include "tests/profiles/probability.h"
#include "tests/reference/oracle.h"

namespace numsim {
namespace {

struct Line {
  const char* profile;
  const char* target;
  int bits;
  double lost_below;  // magnitudes that never round up; 0: there are none
};

// A_N throughout. AMD shifts the 24 bits of the significand out before it adds: from 24 binades
// below the smallest normal on nothing is left, which floor(nu 2^20) gives as well.
const Line kLines[] = {{"ptx-rs", "e4m3fn", 16, 0x1p-25},
                       {"ptx-rs", "e5m2", 16, 0x1p-32},
                       {"ptx-rs", "e3m2fn", 16, 0x1p-20},
                       {"ptx-rs", "e2m3fn", 16, 0x1p-19},
                       {"ptx-rs", "e2m1fn", 8, 0x1p-9},
                       {"ptx-rs", "fp16", 13, 0x1p-37},
                       {"ptx-rs", "bf16", 16, 0},
                       {"amd-sr", "e4m3fn", 20, 0x1p-29},
                       {"amd-sr", "e5m2", 21, 0x1p-37},
                       {"torch-bf16-sr", "bf16", 16, 0},
                       {"amd-sr-host", "e4m3fn", 20, 0},
                       {"amd-sr-host", "e5m2", 21, 0},
                       {"amd-sr-host", "e4m3fnuz", 20, 0},
                       {"p3109-a:8", "binary8p4se", 8, 0},
                       {"p3109-a:1", "binary8p3se", 1, 0},
                       {"p3109-a:12", "binary4p2sf", 12, 0}};

std::string ParamName(const testing::TestParamInfo<Line>& info) {
  std::string name = fmt::format("{}_{}", info.param.profile, info.param.target);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

void PrintTo(const Line& line, std::ostream* os) { *os << line.profile << " to " << line.target; }

class ExactProbability : public testing::TestWithParam<Line> {};

TEST_P(ExactProbability, IsFloorOfTheFractionInEveryBinade) {
  const Line& line = GetParam();
  const ProfileConversion conversion(line.profile, SourceType::kFloat32, ParseFormat(line.target));
  ASSERT_EQ(conversion.random_bits(), line.bits);
  const oracle::Grid grid(oracle::FindFormat(line.target));
  // stochastic_slow_test.cc tries every word of the profiles with more than 16 bits.
  const bool many_words = line.bits > 16;
  const int step = grid.end() > 1024 && !many_words ? 7 : 1;
  for (const float x : InBinades(grid, {1.0, 1.2345678, 1.99999}, step)) {
    ExpectVariantA(conversion, grid, x, many_words ? Count::kBySearching : Count::kEveryWord);
  }
}

TEST_P(ExactProbability, FarBelowTheSmallestSubnormalNothingRoundsUp) {
  const Line& line = GetParam();
  if (line.lost_below == 0) GTEST_SKIP() << "there is no such range";
  const ProfileConversion conversion(line.profile, SourceType::kFloat32, ParseFormat(line.target));
  const auto all_ones = static_cast<uint32_t>((uint64_t{1} << line.bits) - 1);
  const float at = static_cast<float>(line.lost_below);
  EXPECT_EQ(conversion.Encode(std::bit_cast<uint32_t>(at), all_ones), 1u);
  EXPECT_EQ(conversion.Encode(std::bit_cast<uint32_t>(at) - 1, all_ones), 0u);
  EXPECT_EQ(conversion.Encode(1, all_ones), 0u);
}

// A float32 that is a value of the target never moves.
TEST_P(ExactProbability, ValuesStayWhatTheyAre) {
  const Line& line = GetParam();
  const ProfileConversion conversion(line.profile, SourceType::kFloat32, ParseFormat(line.target));
  const oracle::Grid grid(oracle::FindFormat(line.target));
  for (int64_t position = 0; position < grid.end(); ++position) {
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(grid.Value(position)));
    for (const uint32_t word : {0u, 1u, 0x5555'5555u, ~0u}) {
      ASSERT_EQ(conversion.Encode(bits, word), static_cast<uint32_t>(position));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExactProbability, testing::ValuesIn(kLines), ParamName);

TEST(StochasticVariants, CountAsTheirFormulasSay) {
  const oracle::Grid grid(oracle::FindFormat("binary8p4se"));
  for (const int bits : {1, 3, 8, 11}) {
    for (const char variant : {'a', 'b', 'c'}) {
      const ProfileConversion conversion(fmt::format("p3109-{}:{}", variant, bits),
                                         SourceType::kFloat32,
                                         ParseFormat("binary8p4se"));
      for (int exponent = -24; exponent <= 7; ++exponent) {
        for (const double factor : {1.0, 1.03125, 1.0390625, 1.7, 1.9999999}) {
          const float x = static_cast<float>(std::ldexp(factor, exponent));
          const oracle::Place place = grid.Locate(static_cast<double>(x));
          if (place.position >= grid.end() - 1) continue;
          const double scaled = std::ldexp(place.distance / place.gap, bits);
          const double expected = variant == 'a'   ? std::floor(scaled)
                                  : variant == 'b' ? std::floor(scaled + 0.5)
                                                   : std::nearbyint(scaled);
          uint64_t away = 0;
          for (uint32_t word = 0; word < uint32_t{1} << bits; ++word) {
            const uint32_t code = conversion.Encode(std::bit_cast<uint32_t>(x), word);
            if (code == static_cast<uint32_t>(place.position + 1)) ++away;
          }
          EXPECT_EQ(away, static_cast<uint64_t>(expected)) << variant << " " << bits << " " << x;
        }
      }
    }
  }
}

// torchao compares instead of adding: away where R is less than what is cut.
TEST(TorchaoStochastic, RoundsAwayWhereTheWordIsLess) {
  const ProfileConversion conversion("torch-bf16-sr", SourceType::kFloat32, ParseFormat("bf16"));
  for (const uint32_t bits : {0x3F80'1234u, 0xBF80'1234u, 0x0000'1234u, 0x7F7F'1234u}) {
    EXPECT_EQ(conversion.Encode(bits, 0x1233), (bits >> 16) + 1);
    EXPECT_EQ(conversion.Encode(bits, 0x1234), bits >> 16);
    EXPECT_EQ(conversion.Encode(bits, 0xFFFF), bits >> 16);
    EXPECT_EQ(conversion.Encode(bits, 0), (bits >> 16) + 1);
  }
  EXPECT_EQ(conversion.Encode(0x7F80'0000, 0), 0x7F80u);
  // A NaN with payload below the kept bits may become infinity.
  EXPECT_EQ(conversion.Encode(0x7F80'0001, 1), 0x7F80u);
}

TEST(StochasticOverflow, SaturatingProfilesStayAtTheLargestValue) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const char* const profile : {"ptx-rs", "amd-sr"}) {
    const ProfileConversion e4m3(profile, SourceType::kFloat32, ParseFormat("e4m3fn"));
    const ProfileConversion e5m2(profile, SourceType::kFloat32, ParseFormat("e5m2"));
    for (const uint32_t word : {0u, 1u, 0x8000u, 0xFFFF'FFFFu}) {
      for (const float x : {448.0f, 449.0f, 464.0f, 479.0f, 480.0f, 1e30f}) {
        EXPECT_EQ(e4m3.Encode(std::bit_cast<uint32_t>(x), word), 0x7Eu) << profile << " " << x;
        EXPECT_EQ(e4m3.Encode(std::bit_cast<uint32_t>(-x), word), 0xFEu) << profile << " " << x;
      }
      EXPECT_EQ(e5m2.Encode(std::bit_cast<uint32_t>(65535.0f), word), 0x7Bu) << profile;
    }
  }
  const ProfileConversion ptx("ptx-rs", SourceType::kFloat32, ParseFormat("e4m3fn"));
  EXPECT_EQ(ptx.Encode(std::bit_cast<uint32_t>(inf)), 0x7Eu);
  EXPECT_EQ(ptx.Encode(std::bit_cast<uint32_t>(-0.0f), ~0u), 0x80u);
  const ProfileConversion amd("amd-sr", SourceType::kFloat32, ParseFormat("e5m2"));
  EXPECT_EQ(amd.Encode(std::bit_cast<uint32_t>(inf)), 0x7Cu);
  EXPECT_EQ(amd.Encode(std::bit_cast<uint32_t>(-inf)), 0xFCu);
  EXPECT_EQ(amd.Encode(0x7FC0'0000), 0xFEu);
  const ProfileConversion half("ptx-rs", SourceType::kFloat32, ParseFormat("fp16"));
  EXPECT_EQ(half.Encode(std::bit_cast<uint32_t>(65505.0f), 0), 0x7BFFu);
  EXPECT_EQ(half.Encode(std::bit_cast<uint32_t>(65535.0f), 0x1FFF), 0x7C00u);
  EXPECT_EQ(half.Encode(std::bit_cast<uint32_t>(inf)), 0x7C00u);
  EXPECT_EQ(half.Encode(0xFFC0'0000), 0x7FFFu);
  const ProfileConversion clamped("ptx-rs-satfinite", SourceType::kFloat32, ParseFormat("fp16"));
  EXPECT_EQ(clamped.Encode(std::bit_cast<uint32_t>(65535.0f), 0x1FFF), 0x7BFFu);
  EXPECT_EQ(clamped.Encode(std::bit_cast<uint32_t>(-inf)), 0xFBFFu);
}

// Higher bits of the word than an element reads change nothing.
TEST(StochasticProfiles, ReadTheirBitsAlone) {
  for (const Line& line : kLines) {
    const ProfileConversion conversion(
        line.profile, SourceType::kFloat32, ParseFormat(line.target));
    for (uint32_t i = 0; i < 1000; ++i) {
      const uint32_t bits = 0x3F80'0000 + i * 7919;
      const auto low = static_cast<uint32_t>((i * 2654435761u) & ((uint64_t{1} << line.bits) - 1));
      const auto high = static_cast<uint32_t>(~uint64_t{0} << line.bits);
      ASSERT_EQ(conversion.Encode(bits, low), conversion.Encode(bits, low | high)) << line.profile;
    }
  }
}

uint32_t Reversed16(uint32_t x) {
  uint32_t reversed = 0;
  for (int i = 0; i < 16; ++i) reversed |= (x >> i & 1) << (15 - i);
  return reversed;
}

TEST(RandomRegister, PtxSharesItsBitsBetweenElements) {
  const uint32_t word = 0xB3C5'7A19;
  const auto make = [](const char* target) {
    return ProfileConversion("ptx-rs", SourceType::kFloat32, ParseFormat(target));
  };
  const ProfileConversion bf16 = make("bf16");
  ASSERT_EQ(bf16.RandomElements(), 2);
  EXPECT_EQ(bf16.RandomOfWord(word, 0), 0xB3C5u);
  EXPECT_EQ(bf16.RandomOfWord(word, 1), 0x7A19u);
  const ProfileConversion fp16 = make("fp16");
  ASSERT_EQ(fp16.RandomElements(), 2);
  EXPECT_EQ(fp16.RandomOfWord(word, 0), (word >> 16) & 0x1FFF);
  EXPECT_EQ(fp16.RandomOfWord(word, 1), word & 0x1FFF);
  for (const char* const target : {"e4m3fn", "e5m2", "e3m2fn", "e2m3fn"}) {
    const ProfileConversion fp8 = make(target);
    ASSERT_EQ(fp8.RandomElements(), 4);
    EXPECT_EQ(fp8.RandomOfWord(word, 0), Reversed16(0xB3C5)) << target;
    EXPECT_EQ(fp8.RandomOfWord(word, 1), 0xB3C5u) << target;
    EXPECT_EQ(fp8.RandomOfWord(word, 2), Reversed16(0x7A19)) << target;
    EXPECT_EQ(fp8.RandomOfWord(word, 3), 0x7A19u) << target;
  }
  // Eight bits each: the high bytes of both halves serve the first pair, the low ones the second.
  const ProfileConversion fp4 = make("e2m1fn");
  ASSERT_EQ(fp4.RandomElements(), 4);
  using Pair = std::multiset<uint32_t>;
  EXPECT_EQ((Pair{fp4.RandomOfWord(word, 0), fp4.RandomOfWord(word, 1)}), (Pair{0xB3, 0x7A}));
  EXPECT_EQ((Pair{fp4.RandomOfWord(word, 2), fp4.RandomOfWord(word, 3)}), (Pair{0xC5, 0x19}));
}

TEST(RandomRegister, AmdTakesTheHighBitsAndItsHostCodeTheLowOnes) {
  const uint32_t word = 0xB3C5'7A19;
  const auto make = [](const char* profile, const char* target) {
    return ProfileConversion(profile, SourceType::kFloat32, ParseFormat(target));
  };
  EXPECT_EQ(make("amd-sr", "e4m3fn").RandomOfWord(word), word >> 12);
  EXPECT_EQ(make("amd-sr", "e5m2").RandomOfWord(word), word >> 11);
  EXPECT_EQ(make("amd-sr-host", "e4m3fn").RandomOfWord(word), word & 0xF'FFFF);
  EXPECT_EQ(make("amd-sr-host", "e5m2").RandomOfWord(word), word & 0x1F'FFFF);
  EXPECT_EQ(make("torch-bf16-sr", "bf16").RandomOfWord(word), word & 0xFFFF);
  EXPECT_EQ(make("cuda-13", "e4m3fn").RandomOfWord(word), 0u);
  EXPECT_EQ(make("amd-sr", "e4m3fn").RandomElements(), 1);
}

}  // namespace
}  // namespace numsim
