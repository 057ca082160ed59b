// The fixture of tests that need a GPU: tests/DIR/*_device_test.cc. Without one they skip, and say
// why.
#pragma once

#include <gtest/gtest.h>

#include "numsim/backend/device_context.h"

namespace numsim {

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!DeviceAvailable()) GTEST_SKIP() << DeviceUnavailable();
  }

  DeviceStream& stream() { return ThreadStream(); }
  Place place() { return ThreadPlace(); }
};

// For TEST_P.
template <typename T>
class DeviceTestOf : public DeviceTest, public testing::WithParamInterface<T> {};

}  // namespace numsim
