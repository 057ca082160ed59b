// The dynamic 8-bit map by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "numsim/moments/dynamic_map.h"
#include "tests/moments/moment_cases.h"

namespace numsim::moment_test {
namespace {

uint8_t NearestCode(const DynamicMap& map, float x) {
  uint8_t code = 0;
  map.EncodeNearest(&x, 1, &code);
  return code;
}

TEST(DynamicMap, IsTheConstructionOfItsAuthors) {
  for (const bool is_signed : {true, false}) {
    const std::vector<float> expected = oracle::DynamicValues(is_signed);
    const auto& values = DynamicMap::Get(is_signed).values();
    ASSERT_EQ(expected.size(), values.size());
    for (size_t c = 0; c < values.size(); ++c) EXPECT_EQ(values[c], expected[c]) << c;
  }
}

// Values that bitsandbytes prints.
TEST(DynamicMap, HasKnownValues) {
  const auto& with_sign = DynamicMap::Get(true).values();
  EXPECT_EQ(with_sign[0], -0.99296874f);
  EXPECT_EQ(with_sign[1], -0.9789063f);
  EXPECT_EQ(with_sign[2], -0.96484375f);
  EXPECT_EQ(with_sign[126], -5.5e-7f);
  EXPECT_EQ(with_sign[127], 0.0f);
  EXPECT_EQ(with_sign[128], 5.5e-7f);
  EXPECT_EQ(with_sign[129], 3.25e-6f);
  EXPECT_EQ(with_sign[130], 7.75e-6f);
  EXPECT_EQ(with_sign[254], 0.99296874f);
  EXPECT_EQ(with_sign[255], 1.0f);
  const auto& without_sign = DynamicMap::Get(false).values();
  EXPECT_EQ(without_sign[0], 0.0f);
  EXPECT_EQ(without_sign[1], 3.25e-7f);
  EXPECT_EQ(without_sign[2], 7.75e-7f);
  EXPECT_EQ(without_sign[3], 2.125e-6f);
  EXPECT_EQ(without_sign[254], 0.9964844f);
  EXPECT_EQ(without_sign[255], 1.0f);
}

TEST(DynamicMap, IsMirroredButForItsLargestValue) {
  const auto& values = DynamicMap::Get(true).values();
  for (size_t c = 0; c < 127; ++c) EXPECT_EQ(values[c], -values[254 - c]) << c;
}

TEST(DynamicMap, KnowsTheCodeOfZero) {
  EXPECT_EQ(DynamicMap::Get(true).zero_code(), 127);
  EXPECT_EQ(DynamicMap::Get(false).zero_code(), 0);
}

TEST(DynamicMap, KeepsItsOwnValues) {
  for (const bool is_signed : {true, false}) {
    const DynamicMap& map = DynamicMap::Get(is_signed);
    std::vector<uint8_t> codes(256);
    map.EncodeNearest(map.values().data(), 256, codes.data());
    for (size_t c = 0; c < 256; ++c) EXPECT_EQ(codes[c], c);
    for (uint64_t stream = 0; stream < 8; ++stream) {
      map.EncodeStochastic(map.values().data(), 256, 32, {{1, stream}, 0}, codes.data());
      for (size_t c = 0; c < 256; ++c) EXPECT_EQ(codes[c], c);
    }
  }
}

// The floats around every midpoint, where the code changes; a tie goes up.
TEST(DynamicMap, ChangesCodeAtTheMidpoint) {
  for (const bool is_signed : {true, false}) {
    const DynamicMap& map = DynamicMap::Get(is_signed);
    for (uint32_t c = 0; c + 1 < 256; ++c) {
      const long double middle = (static_cast<long double>(map.values()[c]) +
                                  static_cast<long double>(map.values()[c + 1])) /
                                 2;
      float x = std::nextafter(static_cast<float>(middle), -2.0f);
      for (int i = 0; i < 3; ++i, x = std::nextafter(x, 2.0f)) {
        const uint32_t expected = static_cast<long double>(x) >= middle ? c + 1 : c;
        EXPECT_EQ(NearestCode(map, x), expected) << c << " " << x;
      }
    }
  }
}

TEST(DynamicMap, EndsAreTheLimit) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const bool is_signed : {true, false}) {
    const DynamicMap& map = DynamicMap::Get(is_signed);
    const float beyond[] = {-kInfinity, -3e38f, -1.0f, -0.994f, 1.0f, 1.5f, 3e38f, kInfinity};
    uint8_t nearest[8], stochastic[8];
    map.EncodeNearest(beyond, 8, nearest);
    map.EncodeStochastic(beyond, 8, 32, {}, stochastic);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(nearest[i], i < 4 ? 0 : 255) << beyond[i];
      EXPECT_EQ(stochastic[i], i < 4 ? 0 : 255) << beyond[i];
    }
  }
}

TEST(DynamicMap, RoundsUpWithTheExactProbability) {
  constexpr int kBits = 6;
  constexpr size_t kDraws = 6000;
  const DynamicMap& map = DynamicMap::Get(true);
  for (const uint32_t low : {0u, 3u, 100u, 126u, 127u, 128u, 129u, 191u, 254u}) {
    const float from = map.values()[low], to = map.values()[low + 1];
    for (const float share : {0.01f, 0.3f, 0.5f, 0.77f, 0.999f}) {
      const float x = from + share * (to - from);
      const auto exact = (static_cast<long double>(x) - static_cast<long double>(from)) /
                         (static_cast<long double>(to) - static_cast<long double>(from));
      const auto words = static_cast<uint32_t>(std::floor(std::ldexp(exact, kBits)));
      std::vector<uint8_t> codes(kDraws);
      const RandomStream stream{5, low};
      map.EncodeStochastic(
          std::vector<float>(kDraws, x).data(), kDraws, kBits, {stream, 0}, codes.data());
      // Every word that goes up, and no other: together they are `words` of 2^kBits.
      std::set<uint32_t> up, down;
      for (size_t i = 0; i < kDraws; ++i) {
        (codes[i] == low + 1 ? up : down).insert(RandomBits(stream, i, kBits));
        ASSERT_TRUE(codes[i] == low || codes[i] == low + 1);
      }
      EXPECT_EQ(up.size(), words) << low << " " << share;
      EXPECT_EQ(down.size(), (1u << kBits) - words) << low << " " << share;
    }
  }
}

// The draws are those of the stream, wherever an array is cut.
TEST(DynamicMap, DrawsByIndex) {
  const DynamicMap& map = DynamicMap::Get(true);
  std::vector<float> in = MakeData("normal", 5000);
  for (float& x : in) x *= 100;
  std::vector<uint8_t> whole(in.size()), parts(in.size());
  map.EncodeStochastic(in.data(), in.size(), 32, {{9, 9}, 100}, whole.data());
  for (size_t begin = 0; begin < in.size(); begin += 777) {
    const size_t n = std::min<size_t>(777, in.size() - begin);
    map.EncodeStochastic(in.data() + begin, n, 32, {{9, 9}, 100 + begin}, parts.data() + begin);
  }
  EXPECT_EQ(whole, parts);
}

}  // namespace
}  // namespace numsim::moment_test
