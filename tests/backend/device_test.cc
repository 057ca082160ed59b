// Tests what backend/device.h says where there may be no device: in builds with and without CUDA.
#include "numsim/backend/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DeviceUnavailable, NamesWhatTheBuildOrTheMachineLacks) {
  const std::string& reason = DeviceUnavailable();
  if (!NUMSIM_HAVE_CUDA) {
    EXPECT_EQ(reason, "this build has no CUDA kernels");
  } else if (!DeviceAvailable()) {
    EXPECT_TRUE(reason.starts_with("no CUDA device: ") || reason.starts_with("the device is sm_") ||
                reason.find(" cannot be used: ") != std::string::npos)
        << reason;
    EXPECT_THAT(reason, Not(HasSubstr("\n")));
    EXPECT_NE(reason.back(), '.');
  }
}

TEST(DeviceUnavailable, IsTheSameEveryTime) {
  const std::string first = DeviceUnavailable();
  EXPECT_EQ(DeviceUnavailable(), first);
  EXPECT_EQ(DeviceAvailable(), first.empty());
}

}  // namespace
}  // namespace numsim
