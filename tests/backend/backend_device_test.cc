// The backend cuda where there is a device.
#include <algorithm>

#include "numsim/backend/backend.h"
#include "tests/support/device_test.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

using SimdTargetDevice = DeviceTest;

TEST_F(SimdTargetDevice, ForcingCudaAndBackAgainIsSeenAtOnce) {
  const ExecutionState state;
  for (const std::string& name : AvailableBackends()) {
    ForceBackend("cuda");
    EXPECT_EQ(BackendName(), "cuda");
    EXPECT_TRUE(UsesDevice());
    EXPECT_FALSE(UsesScalarReference());
    ForceBackend(name);
    EXPECT_EQ(UsesDevice(), name == "cuda");
  }
}

TEST_F(SimdTargetDevice, CudaIsTheLastBackendAndListedOnce) {
  const std::vector<std::string> names = AvailableBackends();
  EXPECT_EQ(names.back(), "cuda");
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuda"), 1);
}

}  // namespace
}  // namespace numsim
