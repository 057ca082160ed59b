// Every random word in every binade, for the conversion that stochastic_slow_test.cc leaves out.
#include <gtest/gtest.h>

#include "tests/profiles/probability.h"

namespace numsim {
namespace {

TEST(EveryWord, AmdE5m2) { ExpectVariantAInEveryBinade("amd-sr", "e5m2"); }

}  // namespace
}  // namespace numsim
