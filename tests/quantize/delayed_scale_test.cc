#include "numsim/quantize/delayed_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kLargest = std::numeric_limits<float>::max();

// Largest value 448.
DelayedScale E4m3(DelayedScalingOptions options) {
  return DelayedScale(ParseFormat("e4m3fn").spec, options);
}

DelayedScalingOptions Max(size_t history, int margin = 0) {
  return {.history = history, .algorithm = AmaxAlgorithm::kMax, .margin = margin};
}
DelayedScalingOptions MostRecent(size_t history, int margin = 0) {
  return {.history = history, .algorithm = AmaxAlgorithm::kMostRecent, .margin = margin};
}

DelayedScalingOptions Window(size_t history, ScaleRule rule = ScaleRule::kAbsmax) {
  return {.history = history, .algorithm = AmaxAlgorithm::kWindow, .rule = rule};
}

// One step: Record (unless `amax` is negative), Update. Returns the inv_scale afterwards.
float Next(DelayedScale& scale, float absmax) {
  if (!(absmax < 0)) scale.Record(absmax);
  scale.Update();
  return scale.Current().inv_scale;
}

constexpr float kNotRun = -1;

// Returns the message of the Error that Restore throws, or kNoError.
std::string RestoreError(DelayedScale& scale, const std::vector<float>& state) {
  return ErrorOf([&] { scale.Restore(state); });
}

TEST(DelayedScale, TheFirstStepIsNotScaled) {
  for (const auto& options : {Max(4), MostRecent(4), Max(1), Max(1024, 3)}) {
    DelayedScale scale = E4m3(options);
    EXPECT_EQ(scale.Current().scale, 1.0f);
    EXPECT_EQ(scale.Current().inv_scale, 1.0f);
    scale.Record(100.0f);  // of the step that is under way
    EXPECT_EQ(scale.Current().inv_scale, 1.0f);
  }
}

// Four maxima, the newest included: 8 leaves after three more steps.
TEST(DelayedScale, MaxIsOverTheHistoryTheNewestIncluded) {
  DelayedScale scale = E4m3(Max(4));
  EXPECT_EQ(Next(scale, 7.0f), 64.0f);   // 448 / 7
  EXPECT_EQ(Next(scale, 8.0f), 56.0f);   // of 7 8
  EXPECT_EQ(Next(scale, 2.0f), 56.0f);   // 7 8 2
  EXPECT_EQ(Next(scale, 1.0f), 56.0f);   // 7 8 2 1
  EXPECT_EQ(Next(scale, 4.0f), 56.0f);   // 8 2 1 4
  EXPECT_EQ(Next(scale, 3.5f), 112.0f);  // 2 1 4 3.5
  EXPECT_EQ(Next(scale, 3.5f), 112.0f);  // 1 4 3.5 3.5
  EXPECT_EQ(Next(scale, 3.5f), 112.0f);  // 4 3.5 3.5 3.5
  EXPECT_EQ(Next(scale, 3.5f), 128.0f);  // 3.5 each
  EXPECT_EQ(scale.Current().scale, 1.0f / 128);
}

TEST(DelayedScale, MostRecentIsTheNewestAlone) {
  DelayedScale scale = E4m3(MostRecent(4));
  EXPECT_EQ(Next(scale, 7.0f), 64.0f);
  EXPECT_EQ(Next(scale, 2.0f), 224.0f);
  EXPECT_EQ(Next(scale, 448.0f), 1.0f);
}

// Windows of three: the scale changes after every third step, to that of the window alone.
TEST(DelayedScale, WindowsDoNotOverlap) {
  DelayedScale scale = E4m3(Window(3));
  const std::vector<std::pair<float, float>> steps = {{7, 1},
                                                      {14, 1},
                                                      {2, 32},  // 448 / 14
                                                      {56, 32},
                                                      {1, 32},
                                                      {1, 8},  // 448 / 56
                                                      {1, 8},
                                                      {2, 8},
                                                      {1, 224},  // 56 is forgotten
                                                      {7, 224}};
  for (const auto& [absmax, expected] : steps) EXPECT_EQ(Next(scale, absmax), expected) << absmax;
}

TEST(DelayedScale, AStepThatDidNotRunDoesNotFillAWindow) {
  DelayedScale scale = E4m3(Window(3));
  Next(scale, 7.0f);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Next(scale, i % 2 == 0 ? kNotRun : 0.0f), 1.0f);
  EXPECT_EQ(Next(scale, 14.0f), 1.0f);
  EXPECT_EQ(scale.Save(), (std::vector<float>{1, 0, 7, 14}));
  EXPECT_EQ(Next(scale, 1.0f), 32.0f);
  EXPECT_EQ(scale.Save(), (std::vector<float>{32, 0, 0, 0}));
}

TEST(DelayedScale, AWindowWithAnInfinityLeavesTheScale) {
  for (float absmax : {kInfinity, kNaN}) {
    DelayedScale scale = E4m3(Window(2));
    for (float first : {7.0f, 7.0f}) Next(scale, first);
    EXPECT_EQ(Next(scale, absmax), 64.0f);
    EXPECT_EQ(Next(scale, 1.0f), 64.0f);
    EXPECT_EQ(Next(scale, 1.0f), 64.0f);
    EXPECT_EQ(Next(scale, 14.0f), 32.0f);
  }
}

// 448 / 7 is a power of two, 448 / 8 and 448 / 6 are not. By searching all powers of two.
TEST(DelayedScale, PowersOfTwoAreThoseOfTheRule) {
  for (float absmax : {7.0f, 8.0f, 6.0f, 0.3f, 448.0f, 449.0f, 1e-20f, 3e30f}) {
    const double ratio = static_cast<double>(absmax) / 448;
    double floor = std::ldexp(1.0, -200);
    while (2 * floor <= ratio) floor *= 2;
    const double ceil = floor == ratio ? floor : 2 * floor;
    DelayedScale down = E4m3(Window(1, ScaleRule::kPow2Floor));
    DelayedScale up = E4m3(Window(1, ScaleRule::kPow2Ceil));
    EXPECT_EQ(Next(down, absmax), static_cast<float>(1 / floor)) << absmax;
    EXPECT_EQ(down.Current().scale, static_cast<float>(floor)) << absmax;
    EXPECT_EQ(Next(up, absmax), static_cast<float>(1 / ceil)) << absmax;
    EXPECT_EQ(up.Current().scale, static_cast<float>(ceil)) << absmax;
  }
}

TEST(DelayedScale, OtherScaleRulesAreRefused) {
  for (ScaleRule rule : {ScaleRule::kE8m0, ScaleRule::kNone}) {
    EXPECT_THAT(ErrorOf([&] { E4m3(Window(1, rule)); }), HasSubstr("pow2-floor"));
  }
}

TEST(DelayedScale, AHistoryOfOneIsTheNewestAlone) {
  for (const auto& options : {Max(1), MostRecent(1)}) {
    DelayedScale scale = E4m3(options);
    EXPECT_EQ(Next(scale, 7.0f), 64.0f);
    EXPECT_EQ(Next(scale, 2.0f), 224.0f);
    EXPECT_EQ(Next(scale, kNotRun), 224.0f);
  }
}

TEST(DelayedScale, AMarginLeavesPowersOfTwoOfRoom) {
  for (const auto& options : {Max(4, 1), MostRecent(4, 1)}) {
    DelayedScale scale = E4m3(options);
    EXPECT_EQ(Next(scale, 7.0f), 32.0f);
    EXPECT_EQ(scale.Current().scale, 1.0f / 32);
  }
  DelayedScale less = E4m3(Max(4, -1));
  EXPECT_EQ(Next(less, 7.0f), 128.0f);
  DelayedScale more = E4m3(Max(4, 10));
  EXPECT_EQ(Next(more, 7.0f), 0x1p-4f);
}

// The inv_scale is rounded, and the scale is the inverse of the rounded inv_scale.
TEST(DelayedScale, ScaleIsTheInverseOfTheRoundedInvScale) {
  DelayedScale scale = E4m3(Max(4));
  for (float absmax : {0.3f, 1.7f, 3.0f, 1e-20f, 1e20f, 12345.678f, 1e30f}) {
    DelayedScale other = E4m3(MostRecent(4, 1));
    EXPECT_EQ(Next(other, absmax), 224.0f / absmax);
    EXPECT_EQ(other.Current().scale, 1.0f / (224.0f / absmax));
  }
  EXPECT_EQ(Next(scale, 3.0f), 448.0f / 3.0f);
  EXPECT_EQ(scale.Current().scale, 1.0f / (448.0f / 3.0f));
}

TEST(DelayedScale, TheLargestValueIsThatOfTheFormat) {
  DelayedScale e5m2(ParseFormat("e5m2").spec, Max(2));
  EXPECT_EQ(Next(e5m2, 7.0f), 8192.0f);  // 57344 / 7
  DelayedScale int8(ParseFormat("int8").spec, Max(2));
  EXPECT_EQ(Next(int8, 0.5f), 254.0f);
}

TEST(DelayedScale, AMaximumOfZeroInfinityOrNanLeavesTheScale) {
  for (float absmax : {0.0f, kInfinity, kNaN}) {
    DelayedScale fresh = E4m3(Max(4));
    EXPECT_EQ(Next(fresh, absmax), 1.0f);
    DelayedScale recent = E4m3(MostRecent(4));
    EXPECT_EQ(Next(recent, 7.0f), 64.0f);
    EXPECT_EQ(Next(recent, absmax), 64.0f) << absmax;
    EXPECT_EQ(recent.Current().scale, 1.0f / 64);
    EXPECT_EQ(Next(recent, 14.0f), 32.0f);
  }
}

// An infinity or a NaN is the largest of the history for as long as it is in it: four updates.
TEST(DelayedScale, InfinityAndNanHoldTheScaleUntilTheyLeaveTheHistory) {
  for (float absmax : {kInfinity, kNaN}) {
    DelayedScale scale = E4m3(Max(4));
    EXPECT_EQ(Next(scale, 7.0f), 64.0f);
    EXPECT_EQ(Next(scale, absmax), 64.0f);
    EXPECT_EQ(Next(scale, 14.0f), 64.0f);
    EXPECT_EQ(Next(scale, 1.0f), 64.0f);
    EXPECT_EQ(Next(scale, 1.0f), 64.0f);
    EXPECT_EQ(Next(scale, 1.0f), 32.0f);  // 14 1 1 1
  }
}

TEST(DelayedScale, TheLargestOfSeveralRecordsCountsAndNanOutweighsAll) {
  DelayedScale scale = E4m3(MostRecent(4));
  scale.Record(1.0f);
  scale.Record(7.0f);
  EXPECT_EQ(Next(scale, 2.0f), 64.0f);
  // Not carried over to the next step.
  EXPECT_EQ(Next(scale, 2.0f), 224.0f);
  for (const std::vector<float>& order : {std::vector<float>{kNaN, 1.0f, kInfinity},
                                          {1.0f, kInfinity, kNaN},
                                          {kInfinity, kNaN, 1.0f}}) {
    for (float absmax : order) scale.Record(absmax);
    EXPECT_TRUE(std::isnan(scale.Save()[1]));
    scale.Update();
    EXPECT_EQ(scale.Current().inv_scale, 224.0f);
  }
  scale.Record(kInfinity);
  scale.Record(3.0f);
  EXPECT_EQ(scale.Save()[1], kInfinity);
}

// 448 / 2^-149 is beyond float32; so is 448 / A for each A below about 2^-119.
TEST(DelayedScale, AInvScaleBeyondFloat32IsItsLargestValue) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  for (float absmax : {smallest, 0x1p-126f, 0x1p-120f}) {
    DelayedScale scale = E4m3(Max(4));
    EXPECT_EQ(Next(scale, absmax), kLargest) << absmax;
    EXPECT_EQ(scale.Current().scale, 1.0f / kLargest);
    EXPECT_GT(scale.Current().scale, 0.0f);
  }
  DelayedScale scale = E4m3(Max(4));
  EXPECT_EQ(Next(scale, 0x1p-119f), 0x1.cp127f);
}

// A inv_scale below float32's normal numbers would make an infinite scale, or be zero.
TEST(DelayedScale, AInvScaleBelowTheNormalNumbersIsTheSmallestOfThem) {
  for (const float absmax : {0x1p104f, 0x1p127f}) {
    DelayedScale scale = E4m3(MostRecent(4, 32));
    EXPECT_EQ(Next(scale, absmax), 0x1p-126f) << absmax;
    EXPECT_EQ(scale.Current().scale, 0x1p126f);
  }
  DelayedScale last = E4m3(MostRecent(4, -32));
  EXPECT_EQ(Next(last, 0x1p-120f), kLargest);
}

TEST(DelayedScale, MarginsBeyond32AreRefused) {
  for (const int margin : {-1000, -33, 33, 140}) {
    EXPECT_THROW(E4m3(MostRecent(4, margin)), Error) << margin;
  }
}

// A step in which the layer did not run neither moves the history on nor shortens it. The scale is
// worked out again, so the maximum that the last update saw and then dropped is gone from it.
TEST(DelayedScale, TheHistoryStaysWhenTheLayerDidNotRun) {
  DelayedScale scale = E4m3(Max(4));
  for (float absmax : {8.0f, 1.0f, 2.0f, 4.0f}) EXPECT_EQ(Next(scale, absmax), 56.0f);
  EXPECT_EQ(scale.Save(), (std::vector<float>{56, 0, 1, 2, 4}));  // 8 was the oldest of four
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Next(scale, i % 2 == 0 ? kNotRun : 0.0f), 112.0f);  // 448 / 4
    EXPECT_EQ(scale.Save(), (std::vector<float>{112, 0, 1, 2, 4}));
  }
  EXPECT_EQ(Next(scale, 1.0f), 112.0f);
  EXPECT_EQ(scale.Save(), (std::vector<float>{112, 0, 2, 4, 1}));
}

TEST(DelayedScale, SavedAreTheInvScaleTheStagedMaximumAndTheHistoryFromTheOldest) {
  DelayedScale scale = E4m3(Max(4));
  EXPECT_EQ(scale.Save(), (std::vector<float>{1, 0, 0, 0, 0}));
  Next(scale, 7.0f);
  EXPECT_EQ(scale.Save(), (std::vector<float>{64, 0, 0, 0, 7}));
  Next(scale, 14.0f);
  EXPECT_EQ(scale.Save(), (std::vector<float>{32, 0, 0, 7, 14}));
  scale.Record(3.0f);
  EXPECT_EQ(scale.Save(), (std::vector<float>{32, 3, 0, 7, 14}));
  scale.Update();
  EXPECT_EQ(scale.Save(), (std::vector<float>{32, 0, 7, 14, 3}));
  Next(scale, kInfinity);
  EXPECT_EQ(scale.Save(), (std::vector<float>{32, 0, 14, 3, kInfinity}));
}

TEST(DelayedScale, ARestoredScaleGoesOnAsTheOneThatWasSaved) {
  for (const auto& options : {Max(4), MostRecent(4, 1), Window(4, ScaleRule::kPow2Floor)}) {
    DelayedScale scale = E4m3(options);
    for (float absmax : {3.0f, 7.7f, 0.0f, 2.2f, kInfinity, 1.1f}) Next(scale, absmax);
    scale.Record(0.9f);
    DelayedScale other = E4m3(options);
    other.Restore(scale.Save());
    EXPECT_EQ(other.Current().inv_scale, scale.Current().inv_scale);
    EXPECT_EQ(other.Current().scale, scale.Current().scale);
    for (float absmax : {0.5f, 0.25f, 4.4f, kNotRun, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f}) {
      EXPECT_EQ(Next(other, absmax), Next(scale, absmax));
      EXPECT_EQ(other.Save(), scale.Save());
    }
  }
}

TEST(DelayedScale, RestoreRefusesWhatIsNoState) {
  DelayedScale scale = E4m3(Max(4));
  Next(scale, 7.0f);
  const std::vector<float> good = scale.Save();
  const std::vector<std::vector<float>> bad = {{},
                                               {64, 0, 0, 0},
                                               {64, 0, 0, 0, 7, 7},
                                               {0, 0, 0, 0, 7},
                                               {-64, 0, 0, 0, 7},
                                               {kInfinity, 0, 0, 0, 7},
                                               {kNaN, 0, 0, 0, 7},
                                               {64, -1, 0, 0, 7},
                                               {64, 0, 0, 0, -7},
                                               {64, 0, -kInfinity, 0, 7}};
  for (const std::vector<float>& state : bad) {
    EXPECT_NE(RestoreError(scale, state), kNoError) << state.size();
    EXPECT_EQ(scale.Save(), good) << "a refused state must not leave a trace";
  }
  EXPECT_EQ(RestoreError(scale, {64, kNaN, kInfinity, 0, 7}), kNoError);
  EXPECT_EQ(RestoreError(scale, {kLargest, 0, 0, 0, 0}), kNoError);
  EXPECT_EQ(scale.Current().scale, 1.0f / kLargest);
}

TEST(AmaxAlgorithm, NamesAreReadBack) {
  EXPECT_EQ(ParseAmaxAlgorithm("max"), AmaxAlgorithm::kMax);
  EXPECT_EQ(ParseAmaxAlgorithm("most-recent"), AmaxAlgorithm::kMostRecent);
  EXPECT_EQ(ToString(AmaxAlgorithm::kMax), "max");
  EXPECT_EQ(ToString(AmaxAlgorithm::kMostRecent), "most-recent");
  EXPECT_THAT(ErrorOf([] { ParseAmaxAlgorithm("newest"); }),
              AllOf(HasSubstr("newest"), HasSubstr("max"), HasSubstr("most-recent")));
}

}  // namespace
}  // namespace numsim
