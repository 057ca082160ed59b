// Learning rates against the formulas by the C library, and what holds exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "numsim/base/error.h"
#include "numsim/optim/optimizer_config.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::StartsWith;

Schedule Make(ScheduleKind kind, double peak, uint64_t warmup, uint64_t steps, double final) {
  Schedule schedule;
  schedule.kind = kind;
  schedule.peak = peak;
  schedule.warmup = warmup;
  schedule.steps = steps;
  schedule.final = final;
  return schedule;
}

TEST(Schedule, WarmsUpFromAShareOfThePeakToThePeak) {
  for (const auto kind : {ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    const Schedule schedule = Make(kind, 0.5, 4, 100, 0.1);
    EXPECT_EQ(schedule.At(0), 0.125);
    EXPECT_EQ(schedule.At(1), 0.25);
    EXPECT_EQ(schedule.At(2), 0.375);
    EXPECT_EQ(schedule.At(3), 0.5);
    EXPECT_EQ(schedule.At(4), 0.5) << "the first step behind the warm-up has the peak too";
  }
}

TEST(Schedule, CosineFallsByHalfAPeriod) {
  const Schedule schedule = Make(ScheduleKind::kCosine, 2e-3, 10, 110, 0.25);
  EXPECT_NEAR(schedule.At(60), 2e-3 * (0.25 + 0.75 / 2), 1e-17);
  const double pi = std::acos(-1.0);
  for (uint64_t step = 10; step < 110; ++step) {
    const double progress = static_cast<double>(step - 10) / 100;
    const double factor = 0.25 + 0.75 * (1 + std::cos(pi * progress)) / 2;
    EXPECT_NEAR(schedule.At(step), 2e-3 * factor, 1e-17) << step;
  }
}

TEST(Schedule, LinearFallsByEqualSteps) {
  const Schedule schedule = Make(ScheduleKind::kLinear, 1, 0, 8, 0);
  for (uint64_t step = 0; step <= 8; ++step) {
    EXPECT_EQ(schedule.At(step), 1 - static_cast<double>(step) / 8);
  }
}

TEST(Schedule, ConstantStaysAtThePeak) {
  const Schedule schedule = Make(ScheduleKind::kConstant, 3, 0, 10, 0.1);
  for (const uint64_t step : {0, 1, 9, 10, 1000}) EXPECT_EQ(schedule.At(step), 3);
}

TEST(Schedule, EndsAtAShareOfThePeakAndStaysThere) {
  for (const auto kind : {ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    const Schedule schedule = Make(kind, 0.3, 5, 50, 0.1);
    EXPECT_GT(schedule.At(49), 0.3 * 0.1);
    EXPECT_EQ(schedule.At(50), 0.3 * 0.1);
    EXPECT_EQ(schedule.At(5000), 0.3 * 0.1);
  }
}

TEST(Schedule, NeverRisesBehindTheWarmUp) {
  for (const auto kind : {ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    const Schedule schedule = Make(kind, 1e-3, 7, 1000, 0.01);
    for (uint64_t step = 7; step < 1010; ++step) {
      ASSERT_LE(schedule.At(step + 1), schedule.At(step)) << step;
    }
  }
}

TEST(Schedule, NothingButWarmUp) {
  const Schedule schedule = Make(ScheduleKind::kCosine, 1, 4, 4, 0.5);
  EXPECT_EQ(schedule.At(3), 1);
  EXPECT_EQ(schedule.At(4), 0.5);
}

TEST(Schedule, NamesReadBack) {
  for (const auto kind : {ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    EXPECT_EQ(ParseScheduleKind(ToString(kind)), kind);
  }
  EXPECT_THROW(ParseScheduleKind("step"), Error);
}

void ExpectFault(const Schedule& schedule, const std::string& field) {
  EXPECT_THAT(ErrorOf([&] { CheckSchedule(schedule); }), StartsWith(field + ": "));
}

TEST(Schedule, ATrainingMayEndWithinItsWarmUp) {
  const Schedule schedule = Make(ScheduleKind::kCosine, 1e-3, 8, 4, 0.1);
  EXPECT_NO_THROW(CheckSchedule(schedule));
  EXPECT_DOUBLE_EQ(schedule.At(3), 0.5e-3);
}

TEST(Schedule, ErrorsNameTheField) {
  const auto cosine = ScheduleKind::kCosine;
  EXPECT_NO_THROW(CheckSchedule(Make(cosine, 1e-3, 10, 10, 0)));
  EXPECT_NO_THROW(CheckSchedule(Make(ScheduleKind::kConstant, 0, 10, 0, 1)));
  ExpectFault(Make(cosine, -1e-3, 0, 10, 0.1), "schedule.peak");
  ExpectFault(Make(cosine, std::nan(""), 0, 10, 0.1), "schedule.peak");
  ExpectFault(Make(cosine, HUGE_VAL, 0, 10, 0.1), "schedule.peak");
  ExpectFault(Make(cosine, 1e-3, 0, 10, 1.5), "schedule.final");
  ExpectFault(Make(cosine, 1e-3, 0, 10, -0.5), "schedule.final");
}

}  // namespace
}  // namespace numsim
