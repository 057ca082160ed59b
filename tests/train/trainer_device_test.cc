// Trainings run on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numsim/backend/backend.h"
#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/train/trainer.h"
#include "tests/support/device_test.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

class TrainerOnDevice : public DeviceTest {};

TEST_F(TrainerOnDevice, TheBackendOfArraysIsRefused) {
  const ExecutionState state;
  ForceBackend("cuda");
  EXPECT_THAT(ErrorOf([] {
                const TrainConfig config;
                Trainer(config, OpenData(config.data));
              }),
              testing::HasSubstr("backend cuda"));
}

}  // namespace
}  // namespace numsim
