// The contract on which Diff rests: within a range no code comes back once it was left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "numsim/profiles/profile.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/profiles/patterns.h"
#include "tests/reference/inputs.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

// Magnitudes of the source: those at which rules change, and random ones.
std::vector<uint64_t> Magnitudes(SourceType from, const std::string& target) {
  std::vector<uint64_t> magnitudes;
  if (from == SourceType::kFloat32) {
    for (const uint32_t bits : reference::Float32Patterns(target, 20'000)) {
      magnitudes.push_back(bits & 0x7FFF'FFFF);
    }
  } else {
    for (const uint64_t bits : reference::Float64Patterns(target, 10'000)) {
      magnitudes.push_back(bits & ~(uint64_t{1} << 63));
    }
  }
  return magnitudes;
}

uint64_t LastMagnitude(SourceType from) {
  return from == SourceType::kFloat32 ? 0x7FFF'FFFF : ~uint64_t{0} >> 1;
}

// Adds both ends of each range and what lies next to them, and some of the inside.
void AddEnds(const std::vector<uint64_t>& begins,
             uint64_t last,
             std::vector<uint64_t>* magnitudes) {
  oracle::TestRandom random(5);
  for (size_t i = 0; i < begins.size(); ++i) {
    const uint64_t end = i + 1 < begins.size() ? begins[i + 1] - 1 : last;
    for (uint64_t near = 0; near < 4 && near <= end - begins[i]; ++near) {
      magnitudes->push_back(begins[i] + near);
      magnitudes->push_back(end - near);
    }
    const uint64_t length = end - begins[i] + 1;
    for (int k = 0; k < 50; ++k) magnitudes->push_back(begins[i] + random.Below(length));
  }
  std::sort(magnitudes->begin(), magnitudes->end());
  magnitudes->erase(std::unique(magnitudes->begin(), magnitudes->end()), magnitudes->end());
}

// `magnitudes` ascending. Fails where a code comes back within a range.
void ExpectNoCodeComesBack(const ProfileConversion& conversion,
                           const std::vector<uint64_t>& begins,
                           const std::vector<uint64_t>& magnitudes,
                           uint64_t sign,
                           uint32_t random) {
  size_t range = 0;
  std::set<uint32_t> left;
  uint32_t current = conversion.Encode(sign, random);
  for (size_t i = 0; i < magnitudes.size(); i += SampleEvery(16)) {
    const uint64_t magnitude = magnitudes[i];
    const uint32_t code = conversion.Encode(sign | magnitude, random);
    bool fresh = false;
    while (range + 1 < begins.size() && magnitude >= begins[range + 1]) {
      ++range;
      fresh = true;
    }
    if (fresh) {
      left.clear();
    } else if (code != current) {
      left.insert(current);
    }
    current = code;
    ASSERT_EQ(left.count(code), 0u) << fmt::format("{} of {}: code 0x{:X} comes back at 0x{:X}",
                                                   conversion.name(),
                                                   ToString(conversion.format()),
                                                   code,
                                                   sign | magnitude);
  }
}

void ExpectContract(const ProfileConversion& conversion, const std::string& target) {
  const SourceType from = conversion.source_type();
  const std::vector<uint64_t> begins = conversion.MonotoneRanges();
  ASSERT_FALSE(begins.empty());
  ASSERT_EQ(begins.front(), 0u);
  ASSERT_TRUE(std::is_sorted(begins.begin(), begins.end()));
  ASSERT_EQ(std::adjacent_find(begins.begin(), begins.end()), begins.end());
  ASSERT_LE(begins.back(), LastMagnitude(from));
  std::vector<uint64_t> magnitudes = Magnitudes(from, target);
  AddEnds(begins, LastMagnitude(from), &magnitudes);
  const uint64_t sign_bit = LastMagnitude(from) + 1;
  std::vector<uint32_t> words = {0};
  if (conversion.random_bits() > 0) words = {0, 1, 0x1234'5678, ~0u};
  for (const uint32_t word : words) {
    for (const uint64_t sign : {uint64_t{0}, sign_bit}) {
      ExpectNoCodeComesBack(conversion, begins, magnitudes, sign, word);
    }
  }
}

std::vector<std::string> ProfileNames() {
  std::vector<std::string> names;
  for (const ProfileInfo& profile : ProfileTable()) names.emplace_back(profile.name);
  return names;
}

class MonotoneRanges : public testing::TestWithParam<std::string> {};

TEST_P(MonotoneRanges, NoCodeComesBackWithinARange) {
  for (const SourceType from : {SourceType::kFloat32, SourceType::kFloat64}) {
    for (const std::string& target : ProfileTargets(GetParam(), from)) {
      // Of P3109's formats some with every kind of domain; the rest have the same rule.
      if (target.starts_with("binary8") && target[7] != '1' && target[7] != '4') continue;
      ExpectContract(ProfileConversion(GetParam(), from, ParseFormat(target)), target);
    }
  }
}

std::string ParamName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, MonotoneRanges, testing::ValuesIn(ProfileNames()), ParamName);

TEST(MonotoneRangesOfRules, HoldForNumsimsOwn) {
  size_t rules = 0;
  for (const RoundingMode mode : kDeterministicModes) {
    for (const char* const overflow : {"saturate", "nonsaturate", "propagate"}) {
      for (const char* const target : {"e4m3fn", "e8m0fnu", "binary8p1uf", "bnb-e4m3", "int8"}) {
        if (rules++ % SampleEvery(7) != 0) continue;
        const std::string rule = fmt::format("rule:{},{}", ToString(mode), overflow);
        ExpectContract(ProfileConversion(rule, SourceType::kFloat32, ParseFormat(target)), target);
      }
    }
  }
}

// EncodeRun is the quicker Encode.
TEST(EncodeRun, EqualsEncode) {
  oracle::TestRandom random(6);
  for (const ProfileInfo& profile : ProfileTable()) {
    for (const std::string& target : ProfileTargets(profile.name, SourceType::kFloat32)) {
      const ProfileConversion conversion(profile.name, SourceType::kFloat32, ParseFormat(target));
      std::vector<uint32_t> firsts = {0,
                                      0x7F7F'FFF0,
                                      0x7F80'0000 - 37,
                                      0x8000'0000 - 19,
                                      0xFFFF'FF00,
                                      0x43E0'0000 - 5,
                                      0x0040'0000 - 8};
      for (int i = 0; i < 8; ++i) firsts.push_back(random.Next32() & 0xFFFF'FF00);
      for (const uint32_t first : firsts) {
        const uint32_t word = random.Next32();
        std::vector<uint32_t> codes(
            1 + random.Below(std::min<uint64_t>(100, (uint64_t{1} << 32) - first)));
        conversion.EncodeRun(first, word, codes);
        for (uint32_t i = 0; i < codes.size(); ++i) {
          ASSERT_EQ(codes[i], conversion.Encode(first + i, word))
              << fmt::format("{} to {}: 0x{:08X}", profile.name, target, first + i);
        }
      }
    }
  }
}

}  // namespace
}  // namespace numsim
