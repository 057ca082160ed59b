#include "experiments/shared/block_name.h"

#include <gtest/gtest.h>

namespace numsim::experiments {
namespace {

TEST(ParseBlockName, GivesTowerBlockAndRest) {
  const auto parameter = ParseBlockName("image.blocks.12.mlp.up.weight");
  ASSERT_TRUE(parameter);
  EXPECT_EQ(parameter->tower, "image.");
  EXPECT_EQ(parameter->block, 12u);
  EXPECT_EQ(parameter->rest, ".mlp.up.weight");
  const auto output = ParseBlockName("blocks.0");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->tower, "");
  EXPECT_EQ(output->block, 0u);
  EXPECT_EQ(output->rest, "");
}

TEST(ParseBlockName, OfWhatIsInNoBlockIsNone) {
  for (const char* const name :
       {"", "logit_scale", "image.patches.weight", "blocks.", "blocks.x"}) {
    EXPECT_FALSE(ParseBlockName(name)) << name;
  }
}

}  // namespace
}  // namespace numsim::experiments
