#include "tests/profiles/probability.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace numsim {

uint64_t CountWords(const ProfileConversion& conversion,
                    uint32_t bits,
                    uint32_t toward,
                    uint32_t away,
                    Count count) {
  const uint64_t words = uint64_t{1} << conversion.random_bits();
  uint64_t others = 0;
  const auto goes_away = [&](uint64_t word) {
    const uint32_t code = conversion.Encode(bits, static_cast<uint32_t>(word));
    const uint32_t magnitude = code & ~conversion.format().SignBit();
    if (magnitude != away && magnitude != toward) ++others;
    return magnitude == away;
  };
  uint64_t number = 0;
  if (count == Count::kEveryWord) {
    for (uint64_t word = 0; word < words; ++word) number += goes_away(word) ? 1 : 0;
  } else {
    const bool last = goes_away(words - 1);
    uint64_t low = 0, high = words - 1;  // the code of `high` is that of the last word
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (goes_away(middle) == last) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    number = last ? words - high : high;
  }
  EXPECT_EQ(others, 0u) << fmt::format("0x{:08X}", bits);
  return number;
}

void ExpectVariantA(const ProfileConversion& conversion,
                    const oracle::Grid& grid,
                    float x,
                    Count count) {
  const oracle::Place place = grid.Locate(static_cast<double>(x));
  const auto toward = static_cast<uint32_t>(place.position);
  const double scaled = std::ldexp(place.distance / place.gap, conversion.random_bits());
  for (const float value : {x, -x}) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    EXPECT_EQ(CountWords(conversion, bits, toward, toward + 1, count),
              static_cast<uint64_t>(std::floor(scaled)))
        << fmt::format("{} (0x{:08X})", value, bits);
  }
}

void ExpectVariantAInEveryBinade(const char* profile, const char* target) {
  const ProfileConversion conversion(profile, SourceType::kFloat32, ParseFormat(target));
  const oracle::Grid grid(oracle::FindFormat(target));
  for (const float x : InBinades(grid, {1.2345678}, 1)) {
    ExpectVariantA(conversion, grid, x, Count::kEveryWord);
  }
}

std::vector<float> InBinades(const oracle::Grid& grid,
                             const std::vector<double>& factors,
                             int step) {
  std::vector<float> values;
  const double max = grid.Value(grid.end() - 1);
  const int lowest = std::max(-149, std::ilogb(grid.Value(1)) - 26);
  for (int exponent = lowest; exponent <= std::ilogb(max); exponent += step) {
    for (const double factor : factors) {
      const auto x = static_cast<float>(std::ldexp(factor, exponent));
      if (static_cast<double>(x) <= max) values.push_back(x);
    }
  }
  return values;
}

}  // namespace numsim
