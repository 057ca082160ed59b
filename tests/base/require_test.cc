// Checks of arguments, and the messages that they throw.
#include "numsim/base/require.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/misuse.h"

namespace numsim {
namespace {

TEST(Require, ThrowsUnlessTheConditionHolds) {
  EXPECT_EQ(ErrorOf([] { NUMSIM_REQUIRE(1 < 2, "F: {}", 1); }), kNoError);
  EXPECT_EQ(ErrorOf([] { NUMSIM_REQUIRE(2 < 1, "F: {} and {}", 1, "b"); }), "F: 1 and b");
}

TEST(Require, SizesAreThoseExpected) {
  EXPECT_EQ(ErrorOf([] {
              RequireSize(3, 3, "F", "x");
              RequireSize(6, MatrixShape{2, 3}, "F", "x");
              RequireSize(0, MatrixShape{0, SIZE_MAX}, "F", "x");
              RequireCodeBytes(1, 8, "F", "x");
              RequireCodeBytes(2, 9, "F", "x");
              RequireCodeBytes(4, 8, "F", "x");
            }),
            kNoError);
  ExpectErrors({
      {[] { RequireSize(2, 3, "F", "x"); }, "F: 'x' has 2 elements, expected 3"},
      {[] {
         RequireSize(7, MatrixShape{2, 3}, "F", "x");
       },
       "F: 'x' has 7 elements, expected 6 (2 x 3)"},
      {[] { RequireCodeBytes(1, 9, "F", "x"); },
       "F: 'x' has codes of 8 bits, and the format has 9"},
  });
}

// 2^33 rows of 2^31 columns are 2^64 elements, which is 0 in 64 bits.
TEST(Require, NoArrayHasAShapeThatOverflows) {
  static_assert(sizeof(size_t) == 8);
  const MatrixShape shape{size_t{1} << 33, size_t{1} << 31};
  EXPECT_EQ(ErrorOf([&] { RequireSize(0, shape, "F", "x"); }),
            "F: 'x' has 0 elements, and 8589934592 x 2147483648 are more than an array can have");
}

}  // namespace
}  // namespace numsim
