// AMD's 20 and 21 random bits: every word, in every binade.
#include <gtest/gtest.h>

#include "tests/profiles/probability.h"

namespace numsim {
namespace {

void ExpectEveryWord(const char* profile, const char* target) {
  const ProfileConversion conversion(profile, SourceType::kFloat32, ParseFormat(target));
  const oracle::Grid grid(oracle::FindFormat(target));
  for (const float x : InBinades(grid, {1.2345678}, 1)) {
    ExpectVariantA(conversion, grid, x, Count::kEveryWord);
  }
}

TEST(EveryWord, AmdE4m3) { ExpectEveryWord("amd-sr", "e4m3fn"); }
TEST(EveryWord, AmdE5m2) { ExpectEveryWord("amd-sr", "e5m2"); }
TEST(EveryWord, AmdHostE4m3) { ExpectEveryWord("amd-sr-host", "e4m3fn"); }
TEST(EveryWord, AmdHostE5m2Fnuz) { ExpectEveryWord("amd-sr-host", "e5m2fnuz"); }

}  // namespace
}  // namespace numsim
