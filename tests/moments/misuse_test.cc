// Calls of a store of moments that do not fit it throw Error.
#include "tests/support/misuse.h"

#include <gtest/gtest.h>

#include <vector>

#include "numsim/moments/moment_store.h"

namespace numsim {
namespace {

TEST(MomentStoreMisuse, ValuesOfAnotherNumberThrow) {
  for (const char* format : {"fp32", "bf16", "e4m3fn@tensor", "e5m2@block:4", "dynamic:4"}) {
    SCOPED_TRACE(format);
    MomentStore store(ParseMomentFormat(format), 10, true);
    std::vector<float> values(9);
    ExpectErrors({
        {[&] { store.Load(values); }, "MomentStore::Load: 'values' has 9 elements, expected 10"},
        {[&] { store.Store(values, {}); },
         "MomentStore::Store: 'values' has 9 elements, expected 10"},
    });
  }
}

TEST(MomentStoreMisuse, OnlyFloat32HasValues) {
  MomentStore store(ParseMomentFormat("bf16"), 10, true);
  EXPECT_EQ(ErrorOf([&] { store.Values(); }),
            "MomentStore::Values: the moments are bf16, expected fp32");
}

TEST(MomentStoreMisuse, BlocksWithoutElementsThrow) {
  MomentFormat format = ParseMomentFormat("e4m3fn@block:4");
  format.block = 0;
  EXPECT_EQ(ErrorOf([&] { MomentStore store(format, 10, true); }),
            "MomentStore: 8 bits in blocks of 0, expected a signed format of at most 16 bits, or "
            "exact fp32, in blocks of at least 1");
}

}  // namespace
}  // namespace numsim
