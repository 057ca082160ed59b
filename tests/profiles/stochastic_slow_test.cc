// AMD's 20 and 21 random bits: every word, in every binade.
#include <gtest/gtest.h>

#include "tests/profiles/probability.h"

namespace numsim {
namespace {

// stochastic_exhaustive_test.cc has amd-sr to e5m2.
TEST(EveryWord, AmdE4m3) { ExpectVariantAInEveryBinade("amd-sr", "e4m3fn"); }
TEST(EveryWord, AmdHostE4m3) { ExpectVariantAInEveryBinade("amd-sr-host", "e4m3fn"); }
TEST(EveryWord, AmdHostE5m2Fnuz) { ExpectVariantAInEveryBinade("amd-sr-host", "e5m2fnuz"); }

}  // namespace
}  // namespace numsim
