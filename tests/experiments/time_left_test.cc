// Durations as text and estimates of the time left.
#include "experiments/runner/time_left.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace numsim::experiments {
namespace {

TEST(Pace, IsThatOfTheWorkDone) {
  Pace pace;
  EXPECT_EQ(pace.Seconds(60), 60);
  pace.Add(95, 195);  // and 5 s that count as done in time
  EXPECT_EQ(pace.Seconds(60), 120);
  EXPECT_EQ(pace.Seconds(0), 0);
}

TEST(ClockText, HasMinutesAndHoursWhereThereAreAny) {
  EXPECT_EQ(ClockText(0), "0:00");
  EXPECT_EQ(ClockText(-1), "0:00");
  EXPECT_EQ(ClockText(59.6), "1:00");
  EXPECT_EQ(ClockText(605), "10:05");
  EXPECT_EQ(ClockText(3661), "1:01:01");
}

TEST(ClockText, ChangesItsFormAtAnHour) {
  EXPECT_EQ(ClockText(59), "0:59");
  EXPECT_EQ(ClockText(60), "1:00");
  EXPECT_EQ(ClockText(3599), "59:59");
  EXPECT_EQ(ClockText(3600), "1:00:00");
}

// From a billion seconds on, some thirty years.
TEST(ClockText, OfTooLongATimeIsAQuestionMark) {
  EXPECT_EQ(ClockText(1e9 - 1), "277777:46:39");
  EXPECT_EQ(ClockText(1e9), "?");
}

TEST(ClockText, OfAnUnknownTimeIsAQuestionMark) {
  EXPECT_EQ(ClockText(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(ClockText(std::nan("")), "?");
}

TEST(RoughText, HasOneUnit) {
  EXPECT_EQ(RoughText(6), "6 s");
  EXPECT_EQ(RoughText(65), "65 s");
  EXPECT_EQ(RoughText(120), "2 min");
  EXPECT_EQ(RoughText(3 * 3600), "3 h");
  EXPECT_EQ(RoughText(3 * 86400), "3 days");
}

TEST(RoughText, ChangesTheUnitAtOneAndAHalfAndAtTwoDays) {
  EXPECT_EQ(RoughText(89), "89 s");
  EXPECT_EQ(RoughText(90), "2 min");
  EXPECT_EQ(RoughText(89 * 60), "89 min");
  EXPECT_EQ(RoughText(90 * 60), "2 h");
  EXPECT_EQ(RoughText(47 * 3600), "47 h");
  EXPECT_EQ(RoughText(48 * 3600), "2 days");
}

TEST(SecondsLeft, AreAtThePaceSoFar) {
  EXPECT_EQ(SecondsLeft(10, 0.25, 0.75), 30);
  EXPECT_EQ(SecondsLeft(10, 5, 1), 2);
  EXPECT_EQ(SecondsLeft(10, 1, 0), 0);
  EXPECT_EQ(SecondsLeft(10, 0, 1), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace numsim::experiments
