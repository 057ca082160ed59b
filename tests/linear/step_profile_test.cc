#include "numsim/linear/step_profile.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

namespace numsim {
namespace {

TEST(StepProfile, EveryPartHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kStepParts; ++i) names.insert(Name(static_cast<StepPart>(i)));
  EXPECT_EQ(names.size(), kStepParts);
  EXPECT_EQ(Name(StepPart::kProduct), "product");
  EXPECT_EQ(Name(StepPart::kTelemetry), "telemetry");
}

TEST(StepProfile, SumsItsParts) {
  StepProfile profile;
  EXPECT_EQ(profile.Sum(), 0);
  profile[StepPart::kProduct] = 2;
  profile[StepPart::kTelemetry] = 0.5;
  EXPECT_EQ(profile.Sum(), 2.5);
}

TEST(TimedPart, AddsItsLifeToItsPartAlone) {
  StepProfile profile;
  for (int i = 0; i < 2; ++i) {
    const TimedPart part(&profile, StepPart::kNorm);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GE(profile[StepPart::kNorm], 0.004);
  EXPECT_EQ(profile.Sum(), profile[StepPart::kNorm]);
}

TEST(TimedPart, WithoutAProfileDoesNothing) { const TimedPart part(nullptr, StepPart::kNorm); }

}  // namespace
}  // namespace numsim
