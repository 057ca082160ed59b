#include "numsim/linear/step_profile.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

namespace numsim {
namespace {

TEST(StepProfile, EveryPartHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kStepPhases; ++i) names.insert(ToString(static_cast<StepPhase>(i)));
  EXPECT_EQ(names.size(), kStepPhases);
  EXPECT_EQ(ToString(StepPhase::kProduct), "product");
  EXPECT_EQ(ToString(StepPhase::kTelemetry), "telemetry");
}

TEST(StepProfile, SumsItsParts) {
  StepProfile profile;
  EXPECT_EQ(profile.Sum(), 0);
  profile[StepPhase::kProduct] = 2;
  profile[StepPhase::kTelemetry] = 0.5;
  EXPECT_EQ(profile.Sum(), 2.5);
}

TEST(TimedPart, AddsItsLifeToItsPartAlone) {
  StepProfile profile;
  for (int i = 0; i < 2; ++i) {
    const TimedPart part(&profile, StepPhase::kNorm);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GE(profile[StepPhase::kNorm], 0.004);
  EXPECT_EQ(profile.Sum(), profile[StepPhase::kNorm]);
}

}  // namespace
}  // namespace numsim
