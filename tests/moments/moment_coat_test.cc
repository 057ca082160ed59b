// COAT's range expansion: its exponent, its edge cases, and what it keeps.
#include "numsim/moments/moment_coat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "tests/moments/moment_cases.h"
#include "tests/support/special_values.h"

namespace numsim::moment_test {
namespace {

CoatBlock BlockOf(const FormatSpec& format, const std::vector<float>& values) {
  return CoatFormat(format).MakeBlock(values.data(), values.size());
}

// floor(16 log2(100352) / log2(R)) / 16, by hand: log2(100352) = 16.6147.
TEST(CoatFormat, ExponentsOfE4m3fnAreThoseOfThePaper) {
  EXPECT_EQ(BlockOf(kE4M3fn, {1.0f, 2.0f}).exponent, 265.0f / 16);
  EXPECT_EQ(BlockOf(kE4M3fn, {1.0f, 1024.0f}).exponent, 26.0f / 16);
  EXPECT_EQ(BlockOf(kE4M3fn, {-0x1p-20f, 0x1p-4f, 0x1p-4f}).exponent, 16.0f / 16);
  EXPECT_EQ(BlockOf(kE4M3fn, {0x1p-17f, 1.0f}).exponent, 15.0f / 16);
  EXPECT_EQ(BlockOf(kE4M3fn, {0x1p-60f, 1.0f}).exponent, 4.0f / 16);
}

// M^2 / 2 of E5M2 is 57344^2 / 2 = 2^30.6147; of e4m3, whose M is 240, 28800 = 2^14.8138; int8 has
// M / p = 127 = 2^6.9887.
TEST(CoatFormat, ExponentsOfOtherFormats) {
  EXPECT_EQ(BlockOf(kE5M2, {1.0f, 1024.0f}).exponent, 48.0f / 16);
  EXPECT_EQ(BlockOf(kE4M3, {1.0f, 1024.0f}).exponent, 23.0f / 16);
  EXPECT_EQ(BlockOf(kInt8, {1.0f, 1024.0f}).exponent, 11.0f / 16);
}

TEST(CoatFormat, ZerosAndWhatIsNotFiniteStayOutOfTheRange) {
  const CoatBlock plain = BlockOf(kE4M3fn, {0.5f, -3.0f});
  const CoatBlock mixed =
      BlockOf(kE4M3fn, {0.0f, 0.5f, -0.0f, kNaN, -3.0f, kInfinity, -kInfinity, 0.0f, 0.0f});
  EXPECT_EQ(mixed.absmax, plain.absmax);
  EXPECT_EQ(mixed.exponent, plain.exponent);
}

TEST(CoatFormat, BlocksOfOneMagnitudeAndOfNoneAreNotExpanded) {
  EXPECT_EQ(BlockOf(kE4M3fn, {0.3f, -0.3f, 0.3f, 0.0f}).exponent, 1.0f);
  EXPECT_EQ(BlockOf(kE4M3fn, {0.3f, -0.3f, 0.3f, 0.0f}).absmax, 0.3f);
  for (const std::vector<float>& values :
       {std::vector<float>{0.0f, -0.0f}, {kNaN, kInfinity}, std::vector<float>{}}) {
    EXPECT_EQ(BlockOf(kE4M3fn, values).exponent, 1.0f);
    EXPECT_EQ(BlockOf(kE4M3fn, values).absmax, 448.0f);
  }
}

TEST(CoatFormat, ExponentStaysWithinItsLimits) {
  EXPECT_EQ(BlockOf(kE4M3fn, {1.0f, std::nextafter(1.0f, 2.0f)}).exponent, 65536.0f);
  EXPECT_EQ(BlockOf(kE2M1fn, {0x1p-149f, 0x1p127f}).exponent, 1.0f / 16);
  for (const float exponent : {1.0f / 16, 1.0f, 16.5625f, 65536.0f}) {
    EXPECT_TRUE(IsCoatExponent(exponent)) << exponent;
  }
  for (const float exponent : {0.0f, -1.0f, 1.0f / 32, 1.03f, 65537.0f, kInfinity, kNaN}) {
    EXPECT_FALSE(IsCoatExponent(exponent)) << exponent;
  }
}

TEST(CoatFormat, ExpandsTheLargestMagnitudeToTheLargestValue) {
  for (const FormatSpec& format : {kE4M3fn, kE5M2, kE4M3, kInt8}) {
    const CoatFormat coat(format);
    for (const float exponent : {1.0f / 16, 0.8125f, 1.0f, 3.0f, 65536.0f}) {
      const float in[] = {0.3f, -0.3f, 0.0f, kInfinity};
      float out[4];
      coat.Expand({0.3f, exponent}, in, 4, out);
      EXPECT_EQ(out[0], coat.max());
      EXPECT_EQ(out[1], -coat.max());
      EXPECT_EQ(out[2], 0.0f);
      EXPECT_EQ(out[3], kInfinity);
    }
  }
}

// Against COAT's own three numbers in long double: m = sqrt(a c), S = (a / m)^k / M.
TEST(CoatFormat, TwoNumbersSayWhatCoatSaysWithThree) {
  const CoatFormat coat(kE4M3fn);
  const std::vector<float> data = MakeData("heavy-tailed", 128);
  const CoatBlock block = coat.MakeBlock(data.data(), data.size());
  std::vector<float> expanded(data.size());
  coat.Expand(block, data.data(), data.size(), expanded.data());
  long double least = kInfinity;
  for (const float x : data) least = std::min(least, std::fabs(static_cast<long double>(x)));
  const long double a = static_cast<long double>(block.absmax), m = std::sqrt(a * least);
  const long double k = static_cast<long double>(block.exponent);
  const long double s = std::pow(a / m, k) / 448;
  for (size_t i = 0; i < data.size(); ++i) {
    const long double x = static_cast<long double>(data[i]);
    const long double y = std::copysign(std::pow(std::fabs(x) / m, k), x) / s;
    EXPECT_LE(UlpsBetween(expanded[i], static_cast<float>(y)), 1) << data[i];
  }
}

TEST(CoatFormat, FactorsAreThePowersOfTheCodes) {
  CoatFactorCache cache;
  const auto coat = std::make_shared<const CoatFormat>(kE5M2);
  cache.Choose(coat);
  for (const float exponent : {1.0f / 16, 0.5f, 1.0f, 4.0625f, 65536.0f, 0.5f}) {
    const CoatFormat::Factors& factors = cache.Get(exponent);
    EXPECT_EQ(factors[0x7B], 1.0) << exponent;  // the largest value
    EXPECT_EQ(factors[0xFB], -1.0) << exponent;
    EXPECT_EQ(factors[0], 0.0);
    EXPECT_TRUE(std::isnan(factors[0x7E]));
    const double power = std::pow(0x1p-16 / 57344, 1 / static_cast<double>(exponent));
    EXPECT_NEAR(factors[1] / power, 1.0, 1e-11) << exponent;
  }
}

// The cache is asked for one exponent after another, also of two formats.
TEST(CoatFactorCache, NeverGivesFactorsOfAnother) {
  CoatFactorCache cache;
  for (const FormatSpec& format : {kE4M3fn, kE5M2, kE4M3fn}) {
    const auto coat = std::make_shared<const CoatFormat>(format);
    cache.Choose(coat);
    for (int round = 0; round < 2; ++round) {
      for (int steps = 1; steps < 300; steps += 7) {
        const float exponent = static_cast<float>(steps) / 16;
        CoatFormat::Factors expected{};
        coat->MakeFactors(exponent, expected);
        EXPECT_EQ(cache.Get(exponent)[3], expected[3]) << steps;
      }
    }
  }
}

// The least magnitude of a block survives in every format, however wide the block, down to the
// least exponent.
TEST(MomentStoreCoat, FlushesNothing) {
  for (const char* format : {"e4m3fn", "e4m3", "e5m2", "e3m2fn", "e2m1fn", "int8", "e4m3fnuz"}) {
    for (const char* kind :
         {"normal", "squares", "heavy-tailed", "single-zero", "powers", "huge"}) {
      const std::vector<float> data = MakeData(kind, 1000);
      MomentStore store(ParseMomentFormat(std::string(format) + "@coat"), data.size(), true);
      const MomentLoss loss = store.Store(data, {}, true);
      EXPECT_EQ(loss.flushed, 0u) << format << " " << kind;
      EXPECT_EQ(loss.saturated, 0u) << format << " " << kind;
    }
  }
}

// A group of equal magnitudes comes back exactly: nothing is left of the published rule's k of
// infinity. So does a group of zeros.
TEST(MomentStoreCoat, KeepsConstantGroupsExactly) {
  for (const float value : {0.37f, -0.37f, 1e-30f, 0x1p-149f, 3e38f, 0.0f}) {
    for (const size_t n : {1, 128, 200}) {
      const std::vector<float> data(n, value);
      MomentStore store(ParseMomentFormat("e4m3fn@coat"), n, true);
      store.Store(data, {});
      EXPECT_EQ(LoadAll(store), data) << value;
    }
  }
}

// One zero changes no other element, where the published rule takes 1e-20 for the least magnitude.
TEST(MomentStoreCoat, AZeroCostsItsGroupNothing) {
  std::vector<float> data = MakeData("squares", 128);
  MomentStore store(ParseMomentFormat("e4m3fn@coat"), data.size(), false);
  data[5] = data[6];
  store.Store(data, {});
  const std::vector<float> without = LoadAll(store);
  data[5] = 0;
  store.Store(data, {});
  std::vector<float> with = LoadAll(store);
  EXPECT_EQ(with[5], 0.0f);
  with[5] = without[5];
  EXPECT_EQ(with, without);
}

}  // namespace
}  // namespace numsim::moment_test
