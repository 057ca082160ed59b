#include "numsim/base/split_list.h"

#include <gmock/gmock.h>

namespace numsim {
namespace {

using ::testing::ElementsAre;

TEST(SplitList, EveryCommaSeparates) {
  EXPECT_THAT(SplitList("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(SplitList("a"), ElementsAre("a"));
  EXPECT_THAT(SplitList(""), ElementsAre(""));
  EXPECT_THAT(SplitList(",a,"), ElementsAre("", "a", ""));
}

// A key of a custom format stays with its format: "e4m3:bias=5,inf=none".
TEST(SplitFormatList, CommasWithinAFormatDoNotSeparate) {
  EXPECT_THAT(SplitFormatList("bf16,e4m3fn"), ElementsAre("bf16", "e4m3fn"));
  EXPECT_THAT(SplitFormatList("bf16,e4m3:bias=5,inf=none,nan=none,fp16"),
              ElementsAre("bf16", "e4m3:bias=5,inf=none,nan=none", "fp16"));
  EXPECT_THAT(SplitFormatList("e4m3:bias=5,e5m2:inf=none"),
              ElementsAre("e4m3:bias=5", "e5m2:inf=none"));
  EXPECT_THAT(SplitFormatList("bias=5,bf16"), ElementsAre("bias=5", "bf16"));
}

}  // namespace
}  // namespace numsim
