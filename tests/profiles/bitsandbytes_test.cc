// bitsandbytes: a search in the sorted values of its map, whose ties depend on where it comes from.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/profiles/profile.h"
#include "tests/profiles/patterns.h"
#include "tests/reference/oracle.h"
#include "tests/reference/profiles/conversions.h"

namespace numsim {
namespace {

// create_fp8_map(True, exponent bits, mantissa bits), not divided by its largest value: for every
// exponent field and mantissa a value and its negative, sorted.
std::vector<double> Map(int exponent_bits, int mantissa_bits) {
  std::vector<double> map;
  const int bias = 1 << (exponent_bits - 1);
  for (int field = 0; field < 1 << exponent_bits; ++field) {
    for (int mantissa = 0; mantissa < 1 << mantissa_bits; ++mantissa) {
      const double fraction = std::ldexp(mantissa, -mantissa_bits);
      const double value =
          field == 0 ? std::ldexp(fraction, -bias) : std::ldexp(1 + fraction, bias + 1 - field);
      map.push_back(value);
      map.push_back(-value);
    }
  }
  std::sort(map.begin(), map.end());
  return map;
}

void ExpectSearch(const char* target, int exponent_bits, int mantissa_bits) {
  const std::vector<double> map = Map(exponent_bits, mantissa_bits);
  ASSERT_EQ(map.size(), 256u);
  const ProfileConversion conversion("bitsandbytes", SourceType::kFloat32, ParseFormat(target));
  const oracle::Grid grid(oracle::FindFormat(target));
  int mismatches = 0;
  for (const uint32_t bits : reference::Float32Patterns(target, 200'000)) {
    const float x = std::bit_cast<float>(bits);
    const double expected = map[static_cast<size_t>(reference::BitsAndBytesIndex(map, x))];
    const oracle::Real actual = oracle::DecodeCode(grid, conversion.Encode(bits));
    const double value = actual.negative ? -actual.magnitude : actual.magnitude;
    if (value == expected) continue;
    if (++mismatches <= 5) ADD_FAILURE() << target << " " << x << ": " << value << " " << expected;
  }
  EXPECT_EQ(mismatches, 0);
}

TEST(BitsAndBytes, E4m3EqualsTheSearchInItsMap) { ExpectSearch("bnb-e4m3", 4, 3); }
TEST(BitsAndBytes, E5m2EqualsTheSearchInItsMap) { ExpectSearch("bnb-e5m2", 5, 2); }

}  // namespace
}  // namespace numsim
