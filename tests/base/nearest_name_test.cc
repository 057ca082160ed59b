// Suggestions for mistyped names.
#include "numsim/base/nearest_name.h"

#include <gtest/gtest.h>

namespace numsim {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("train", "train"), 0u);
  EXPECT_EQ(EditDistance("tran", "train"), 1u);
  EXPECT_EQ(EditDistance("traain", "train"), 1u);
  EXPECT_EQ(EditDistance("trein", "train"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("flaw", "lawn"), 2u);
}

TEST(IsLikelyTypo, AllowsOneChangeInThreeBytes) {
  EXPECT_FALSE(IsLikelyTypo(1, 1));  // x is no typo of m
  EXPECT_TRUE(IsLikelyTypo(1, 2));
  EXPECT_TRUE(IsLikelyTypo(1, 4));
  EXPECT_FALSE(IsLikelyTypo(2, 4));
  EXPECT_TRUE(IsLikelyTypo(2, 5));
  EXPECT_TRUE(IsLikelyTypo(3, 8));
  EXPECT_FALSE(IsLikelyTypo(4, 8));
}

TEST(NearestName, IsTheFirstOfTheNearest) {
  const std::vector<std::string> names = {"list", "run", "train", "trail"};
  EXPECT_EQ(NearestName("tran", names), "train");
  EXPECT_EQ(NearestName("trai", names), "train");
  EXPECT_EQ(NearestName("trial", names), "trail");
  EXPECT_EQ(NearestName("lst", names), "list");
}

// The product of the lengths would take minutes.
TEST(NearestName, OfVeryLongTextIsNone) {
  EXPECT_EQ(NearestName(std::string(50000000, 'x'), {"list", std::string(50000, 'x')}), "");
}

TEST(NearestName, IsEmptyIfNoneIsNear) {
  EXPECT_EQ(NearestName("frobnicate", {"list", "run", "train"}), "");
  EXPECT_EQ(NearestName("x", {"m"}), "");
  EXPECT_EQ(NearestName("train", {}), "");
}

}  // namespace
}  // namespace numsim
