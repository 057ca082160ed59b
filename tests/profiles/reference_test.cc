// Profiles against references written from the descriptions of the implementations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "numsim/profiles/profile.h"
#include "tests/profiles/patterns.h"
#include "tests/reference/inputs.h"
#include "tests/reference/profiles/conversions.h"

namespace numsim {
namespace {

using reference::Conversion;
using reference::Expected;

constexpr int kRandomPatterns = 20'000;

bool IsNanOf(const oracle::Format& format, uint32_t code) {
  for (const oracle::CodeRange& range : format.nans) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

std::string ParamName(const testing::TestParamInfo<Conversion>& info) {
  std::string name = info.param.profile + "_to_" + info.param.target;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

class ProfileF32 : public testing::TestWithParam<Conversion> {};
class ProfileF64 : public testing::TestWithParam<Conversion> {};

// Mismatches of one conversion over `patterns`; the first few of them are reported.
template <typename Pattern>
void Compare(const Conversion& expected, SourceType from, const std::vector<Pattern>& patterns) {
  const ProfileConversion actual(expected.profile, from, ParseFormat(expected.target));
  ASSERT_EQ(actual.random_bits(), expected.random_bits);
  const oracle::Format& meaning =
      oracle::FindFormat(expected.meaning.empty() ? expected.target : expected.meaning);
  oracle::TestRandom words(7);
  int mismatches = 0;
  for (const Pattern pattern : patterns) {
    const uint32_t random = words.Next32();
    const uint32_t code = actual.Encode(pattern, random);
    const Expected want =
        expected.encode(pattern, reference::LowBits(random, expected.random_bits));
    const bool same = code == want.code || (want.any_nan && IsNanOf(meaning, code));
    if (same) continue;
    if (++mismatches > 5) continue;
    ADD_FAILURE() << fmt::format("{} to {}: 0x{:X} with R = 0x{:X} gives 0x{:X}, not 0x{:X}",
                                 expected.profile,
                                 expected.target,
                                 pattern,
                                 random,
                                 code,
                                 want.code);
  }
  EXPECT_EQ(mismatches, 0) << "of " << patterns.size();
}

TEST_P(ProfileF32, EqualsItsReference) {
  Compare(GetParam(),
          SourceType::kFloat32,
          reference::Float32Patterns(GetParam().target, kRandomPatterns));
}

TEST_P(ProfileF64, EqualsItsReference) {
  Compare(GetParam(),
          SourceType::kFloat64,
          reference::Float64Patterns(GetParam().target, kRandomPatterns));
}

INSTANTIATE_TEST_SUITE_P(All,
                         ProfileF32,
                         testing::ValuesIn(reference::Float32Conversions()),
                         ParamName);
INSTANTIATE_TEST_SUITE_P(All,
                         ProfileF64,
                         testing::ValuesIn(reference::Float64Conversions()),
                         ParamName);

}  // namespace
}  // namespace numsim
