#include "numsim/stats/spikes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Steps = std::vector<uint64_t>;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr uint64_t kLastStep = std::numeric_limits<uint64_t>::max();

// Uniform numbers that are the same with every standard library.
class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}

  double Unit() { return (static_cast<double>(engine_()) + 0.5) * 0x1p-32; }
  uint64_t Below(uint64_t end) { return static_cast<uint64_t>(Unit() * static_cast<double>(end)); }
  bool Hits(double probability) { return Unit() < probability; }
  // Near a normal deviate: mean 0, deviation 1.
  double Noise() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Unit();
    return sum;
  }
  // Some of the steps first <= step < last.
  Steps Some(uint64_t first, uint64_t last, double probability) {
    Steps steps;
    for (uint64_t step = first; step < last; ++step) {
      if (Hits(probability)) steps.push_back(step);
    }
    return steps;
  }

 private:
  std::mt19937 engine_;
};

// No steps ignored.
SpikeRule FromTheStart() {
  SpikeRule rule;
  rule.ignored = 0;
  return rule;
}

std::vector<double> Series(size_t size, double value) { return std::vector<double>(size, value); }

// A series that is `value` at these steps, 0 at others.
std::vector<double> Pulses(size_t size, const Steps& at, double value) {
  std::vector<double> series(size, 0.0);
  for (uint64_t step : at) series[step] = value;
  return series;
}

// --- The reference, step by step ---

double PlainDeviation(const std::vector<double>& losses, size_t at, size_t window) {
  const size_t n = std::min(at, window);
  if (n < std::min<size_t>(16, window)) return kNoNumber;
  if (!std::isfinite(losses[at])) return kEndless;
  long double mean = 0, squares = 0;
  bool equal = true;
  for (size_t i = at - n; i < at; ++i) {
    mean += losses[i];
    equal = equal && losses[i] == losses[at - 1];
  }
  if (equal) return losses[at] > losses[at - 1] ? kEndless : kNoNumber;
  mean /= static_cast<long double>(n);
  for (size_t i = at - n; i < at; ++i) squares += (losses[i] - mean) * (losses[i] - mean);
  return static_cast<double>((losses[at] - mean) /
                             std::sqrt(squares / static_cast<long double>(n)));
}

// A clock that runs down from `merge` at every event that counts.
Steps PlainMerge(const std::vector<bool>& events, uint64_t merge) {
  Steps result;
  uint64_t quiet = 0;
  for (size_t step = 0; step < events.size(); ++step) {
    if (events[step] && quiet == 0) {
      result.push_back(step);
      quiet = merge;
    }
    if (quiet > 0) --quiet;
  }
  return result;
}

Steps PlainRmsSpikes(const std::vector<double>& rms, const SpikeRule& rule) {
  std::vector<bool> events(rms.size());
  for (size_t t = rule.ignored; t < rms.size(); ++t) events[t] = rms[t] >= rule.rms;
  return PlainMerge(events, rule.merge);
}

Steps PlainDeviationSpikes(const std::vector<double>& deviations, const SpikeRule& rule) {
  std::vector<bool> events(deviations.size());
  for (size_t t = rule.ignored; t < events.size(); ++t) {
    size_t count = 0;
    for (size_t u = t; u < std::min(events.size(), t + rule.merge); ++u) {
      count += deviations[u] > rule.deviations;
    }
    events[t] = deviations[t] > rule.deviations && count >= rule.confirm;
  }
  return PlainMerge(events, rule.merge);
}

double PlainMean(const std::vector<double>& x, size_t begin, size_t end) {
  long double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += x[i];
  return static_cast<double>(sum / static_cast<long double>(end - begin));
}

// Every spike begins at step `merge` or later. The step of recovery is lost too.
Steps PlainRecoverySteps(const std::vector<double>& losses, const Steps& spikes, uint64_t merge) {
  Steps lost(spikes.size());
  bool inside = false;
  size_t begin = 0, spike = 0;
  double before = 0;
  for (size_t t = 0; t < losses.size(); ++t) {
    const auto here = std::find(spikes.begin(), spikes.end(), t);
    if (!inside && here != spikes.end()) {
      inside = true;
      spike = static_cast<size_t>(here - spikes.begin());
      begin = t;
      before = PlainMean(losses, t - merge, t);
    }
    if (!inside) continue;
    ++lost[spike];
    inside = PlainMean(losses, std::max(begin, t + 1 - merge), t + 1) > before;
  }
  return lost;
}

bool PlainPredicts(const Steps& events, uint64_t spike, const SpikeRule& rule) {
  return std::any_of(events.begin(), events.end(), [&](uint64_t event) {
    return event < spike && spike - event >= rule.first_lead && spike - event <= rule.last_lead;
  });
}

uint64_t PlainPredicted(const EventSeries& series, const SpikeRule& rule) {
  uint64_t count = 0;
  for (uint64_t spike : series.spikes) count += PlainPredicts(series.events, spike, rule);
  return count;
}

// Predictions after each shift of one series.
Steps PlainShifts(EventSeries series, const SpikeRule& rule) {
  Steps counts;
  for (uint64_t shift = series.first; shift < series.last; ++shift) {
    counts.push_back(PlainPredicted(series, rule));
    for (uint64_t& event : series.events) {
      if (++event == series.last) event = series.first;
    }
  }
  return counts;
}

// Adds the predictions after all combinations of shifts of the series from `at` on.
void Enumerate(const std::vector<Steps>& shifts, size_t at, uint64_t sum, Steps& sums) {
  if (at == shifts.size()) {
    sums.push_back(sum);
    return;
  }
  for (uint64_t count : shifts[at]) Enumerate(shifts, at + 1, sum + count, sums);
}

Prediction PlainPrediction(const std::vector<EventSeries>& all, const SpikeRule& rule) {
  Prediction result;
  double leads = 0;
  std::vector<Steps> shifts;
  for (const EventSeries& series : all) {
    result.events += series.events.size();
    result.spikes += series.spikes.size();
    result.predicted += PlainPredicted(series, rule);
    for (uint64_t event : series.events) {
      result.followed += std::any_of(series.spikes.begin(), series.spikes.end(), [&](uint64_t s) {
        return PlainPredicts({event}, s, rule);
      });
    }
    for (uint64_t spike : series.spikes) {
      for (uint64_t event : series.events) {
        if (!PlainPredicts({event}, spike, rule)) continue;
        leads += static_cast<double>(spike - event);
        break;
      }
    }
    shifts.push_back(PlainShifts(series, rule));
  }
  result.lead = leads / static_cast<double>(result.predicted);
  Steps sums;
  Enumerate(shifts, 0, 0, sums);
  const double total = static_cast<double>(sums.size());
  result.expected =
      static_cast<double>(std::accumulate(sums.begin(), sums.end(), uint64_t{0})) / total;
  result.p = static_cast<double>(std::count_if(
                 sums.begin(), sums.end(), [&](uint64_t s) { return s >= result.predicted; })) /
             total;
  return result;
}

void ExpectSame(const Prediction& got, const Prediction& want) {
  EXPECT_EQ(got.events, want.events);
  EXPECT_EQ(got.spikes, want.spikes);
  EXPECT_EQ(got.predicted, want.predicted);
  EXPECT_EQ(got.followed, want.followed);
  if (want.predicted == 0) {
    EXPECT_TRUE(std::isnan(got.lead));
  } else {
    EXPECT_NEAR(got.lead, want.lead, 1e-12);
  }
  EXPECT_NEAR(got.expected, want.expected, 1e-12 * (1 + want.expected));
  EXPECT_NEAR(got.p, want.p, 1e-12 * want.p);
}

// --- Rule ---

TEST(SpikeRule, IsThatOfThePaper) {
  const SpikeRule rule;
  EXPECT_EQ(rule.rms, 2.3);
  EXPECT_EQ(rule.deviations, 3.2);
  EXPECT_EQ(rule.ignored, 1000u);
  EXPECT_EQ(rule.merge, 10u);
  EXPECT_EQ(rule.confirm, 2u);
  EXPECT_EQ(rule.first_lead, 1u);
  EXPECT_EQ(rule.last_lead, 8u);
  EXPECT_EQ(ErrorOf([&] { CheckSpikeRule(rule); }), kNoError);
}

TEST(CheckSpikeRule, NamesTheField) {
  struct Case {
    const char* field;
    void (*spoil)(SpikeRule&);
  };
  const Case cases[] = {
      {"spikes.rms", [](SpikeRule& r) { r.rms = 0; }},
      {"spikes.rms", [](SpikeRule& r) { r.rms = -2.3; }},
      {"spikes.rms", [](SpikeRule& r) { r.rms = kNoNumber; }},
      {"spikes.rms", [](SpikeRule& r) { r.rms = kEndless; }},
      {"spikes.deviations", [](SpikeRule& r) { r.deviations = 0; }},
      {"spikes.deviations", [](SpikeRule& r) { r.deviations = -1; }},
      {"spikes.deviations", [](SpikeRule& r) { r.deviations = kNoNumber; }},
      {"spikes.deviations", [](SpikeRule& r) { r.deviations = kEndless; }},
      {"spikes.window", [](SpikeRule& r) { r.window = 0; }},
      {"spikes.window", [](SpikeRule& r) { r.window = 1; }},
      {"spikes.merge", [](SpikeRule& r) { r.merge = 0; }},
      {"spikes.confirm", [](SpikeRule& r) { r.confirm = 0; }},
      {"spikes.first_lead", [](SpikeRule& r) { r.first_lead = 0; }},
      {"_lead", [](SpikeRule& r) { r.last_lead = 0; }},
      {"_lead", [](SpikeRule& r) { r.first_lead = 9; }},
  };
  for (const Case& c : cases) {
    SpikeRule rule;
    c.spoil(rule);
    EXPECT_THAT(ErrorOf([&] { CheckSpikeRule(rule); }), HasSubstr(c.field));
  }
}

TEST(CheckSpikeRule, AcceptsTheLeastOfEachField) {
  SpikeRule rule;
  rule.rms = rule.deviations = std::numeric_limits<double>::denorm_min();
  rule.window = 2;
  rule.ignored = 0;
  rule.merge = rule.confirm = 1;
  rule.first_lead = rule.last_lead = 1;
  EXPECT_EQ(ErrorOf([&] { CheckSpikeRule(rule); }), kNoError);
}

// --- LossDeviation ---

// Mean 2, deviation 1; the sample's deviation would be 1.03.
TEST(LossDeviation, CountsDeviationsThatDivideByTheNumberOfLosses) {
  const std::vector<double> before = {1, 3, 3, 1, 3, 1, 1, 3, 1, 3, 1, 1, 3, 3, 1, 3};
  EXPECT_DOUBLE_EQ(LossDeviation(before, 5.25, 128), 3.25);
  EXPECT_DOUBLE_EQ(LossDeviation(before, 2, 128), 0);
  EXPECT_DOUBLE_EQ(LossDeviation(before, -1, 128), -3);
}

TEST(LossDeviation, NeedsSixteenLossesOrTheWholeWindow) {
  EXPECT_EQ(kLeastLosses, 16u);
  for (size_t window : {2, 3, 15, 16, 17, 128}) {
    const size_t least = std::min<size_t>(16, window);
    std::vector<double> before;
    for (size_t n = 0; n < 40; ++n) {
      EXPECT_EQ(std::isnan(LossDeviation(before, 7, window)), n < least) << n << " of " << window;
      before.push_back(static_cast<double>(n % 2));
    }
  }
}

TEST(LossDeviation, OnlyTheLastLossesOfTheWindowCount) {
  const std::vector<double> before = {1000, -50, 1, 3};
  EXPECT_DOUBLE_EQ(LossDeviation(before, 4, 2), 2);
  // Mean 2/3 - 16 = -46/3, squares 104^2 + 49^2 + 55^2 over 9.
  EXPECT_NEAR(
      LossDeviation(before, 4, 3), (58 / 3.0) / std::sqrt((10816 + 2401 + 3025) / 27.0), 1e-14);
}

// The mean of equal losses is rounded: 0.1 or 1/3 must still have deviation 0.
TEST(LossDeviation, AboveEqualLossesIsInfinite) {
  for (double level : {0.1, 1 / 3.0, 0.7, 1e-300, 1e10, 0.0, -2.3}) {
    for (size_t n : {2, 3, 7, 10, 16, 100, 128}) {
      const std::vector<double> before = Series(n, level);
      ASSERT_EQ(LossDeviation(before, std::nextafter(level, kEndless), n), kEndless) << level;
      ASSERT_EQ(LossDeviation(before, level + 1, n), kEndless) << level;
      // No deviation for those that are not above.
      ASSERT_FALSE(LossDeviation(before, level, n) > 0) << level;
      ASSERT_FALSE(LossDeviation(before, level - 1, n) > 0) << level;
    }
  }
}

TEST(LossDeviation, OfALossThatIsNotFiniteIsInfinite) {
  std::vector<double> before(20);
  std::iota(before.begin(), before.end(), 0.0);
  for (double loss : {kNoNumber, kEndless, -kEndless}) {
    EXPECT_EQ(LossDeviation(before, loss, 128), kEndless);
    EXPECT_EQ(LossDeviation(before, loss, 4), kEndless);
    EXPECT_EQ(LossDeviation(Series(20, 1), loss, 128), kEndless);
  }
}

TEST(LossDeviation, DoesNotDependOnTheUnit) {
  Dice dice(1);
  std::vector<double> losses(50);
  for (double& loss : losses) loss = 2 + dice.Noise();
  const double want = LossDeviation(losses, 6, 40);
  for (double unit : {0x1p-120, 0x1p-20, 0x1p120}) {
    std::vector<double> scaled = losses;
    for (double& loss : scaled) loss *= unit;
    EXPECT_DOUBLE_EQ(LossDeviation(scaled, unit * 6, 40), want) << unit;
  }
}

// Losses of many sizes: one of 1e30 must leave no trace once it left the window.
std::vector<double> RoughLosses(size_t size, uint32_t seed) {
  Dice dice(seed);
  std::vector<double> losses;
  double level = 6, spread = 0.1;
  while (losses.size() < size) {
    if (dice.Hits(0.01)) level = 6 * dice.Unit();
    if (dice.Hits(0.01)) spread = dice.Hits(0.3) ? 0 : std::pow(10.0, -4 * dice.Unit());
    double loss = level + spread * dice.Noise();
    if (dice.Hits(0.02)) loss += 3 * spread * (1 + dice.Unit());
    if (dice.Hits(0.002)) loss = 1e30;
    losses.push_back(loss);
  }
  return losses;
}

TEST(LossDeviations, AreThoseOfTheTwoPassFormula) {
  for (size_t window : {2, 5, 16, 17, 128, 5000}) {
    const std::vector<double> losses = RoughLosses(4000, 7);
    const std::vector<double> deviations = LossDeviations(losses, window);
    ASSERT_EQ(deviations.size(), losses.size());
    for (size_t t = 0; t < losses.size(); ++t) {
      const double want = PlainDeviation(losses, t, window);
      if (t < std::min<size_t>(16, window)) {
        EXPECT_TRUE(std::isnan(deviations[t])) << t << " of " << window;
      } else if (std::isnan(want)) {
        EXPECT_FALSE(deviations[t] > 0) << t << " of " << window;
      } else if (std::isinf(want)) {
        EXPECT_EQ(deviations[t], want) << t << " of " << window;
      } else {
        EXPECT_NEAR(deviations[t], want, 1e-9 * (1 + std::abs(want))) << t << " of " << window;
      }
      const double one = LossDeviation(std::span(losses).first(t), losses[t], window);
      EXPECT_TRUE(one == deviations[t] || (std::isnan(one) && std::isnan(deviations[t]))) << t;
    }
  }
}

TEST(LossDeviations, SurviveAMeanFarAboveTheSpread) {
  Dice dice(3);
  std::vector<double> losses(1500);
  for (double& loss : losses) loss = 1e6 + 1e-3 * dice.Noise();
  const std::vector<double> deviations = LossDeviations(losses, 128);
  for (size_t t = 16; t < losses.size(); ++t) {
    EXPECT_NEAR(deviations[t], PlainDeviation(losses, t, 128), 1e-5) << t;
  }
}

TEST(LossDeviations, OfNothingAreNothing) {
  EXPECT_THAT(LossDeviations({}, 128), IsEmpty());
  EXPECT_THAT(LossSpikes({}, FromTheStart()), IsEmpty());
  EXPECT_THAT(RmsSpikes({}, SpikeRule()), IsEmpty());
  EXPECT_THAT(DeviationSpikes({}, SpikeRule()), IsEmpty());
}

// --- Merging ---

TEST(MergeEvents, KeepsTheFirstOfEachGroup) {
  EXPECT_THAT(MergeEvents({}, 10), IsEmpty());
  EXPECT_THAT(MergeEvents(Steps{5}, 10), ElementsAre(5));
  EXPECT_THAT(MergeEvents(Steps{5, 14}, 10), ElementsAre(5));
  EXPECT_THAT(MergeEvents(Steps{5, 15}, 10), ElementsAre(5, 15));
  // Counted from the first of the group, not from the last.
  EXPECT_THAT(MergeEvents(Steps{0, 6, 12, 18, 24}, 10), ElementsAre(0, 12, 24));
  EXPECT_THAT(MergeEvents(Steps{3, 4, 5}, 1), ElementsAre(3, 4, 5));
  EXPECT_THAT(MergeEvents(Steps{3, 4, 5, 6}, 2), ElementsAre(3, 5));
}

TEST(MergeEvents, DoesNotOverflow) {
  EXPECT_THAT(MergeEvents(Steps{kLastStep - 3, kLastStep - 1, kLastStep}, 2),
              ElementsAre(kLastStep - 3, kLastStep - 1));
  EXPECT_THAT(MergeEvents(Steps{5, 2000, kLastStep}, kLastStep), ElementsAre(5));
  EXPECT_THAT(MergeEvents(Steps{0, 2000, kLastStep}, kLastStep), ElementsAre(0, kLastStep));
}

TEST(MergeEvents, IsThatOfAClockThatRunsDown) {
  Dice dice(11);
  for (int round = 0; round < 60; ++round) {
    const uint64_t merge = 1 + dice.Below(20);
    const Steps steps = dice.Some(0, 1500, dice.Unit());
    std::vector<bool> events(1500);
    for (uint64_t step : steps) events[step] = true;
    EXPECT_EQ(MergeEvents(steps, merge), PlainMerge(events, merge)) << "merge " << merge;
  }
}

// --- RMS spikes ---

TEST(RmsSpikes, HaveAtLeastTheThreshold) {
  std::vector<double> rms = Series(60, 1);
  rms[10] = 2.3;
  rms[30] = std::nextafter(2.3, 0.0);
  rms[50] = kEndless;
  EXPECT_THAT(RmsSpikes(rms, FromTheStart()), ElementsAre(10, 50));
}

TEST(RmsSpikes, OfNaNAreNone) {
  std::vector<double> rms = Series(40, kNoNumber);
  EXPECT_THAT(RmsSpikes(rms, FromTheStart()), IsEmpty());
  rms[12] = 3;
  rms[30] = -kEndless;
  EXPECT_THAT(RmsSpikes(rms, FromTheStart()), ElementsAre(12));
}

TEST(RmsSpikes, AreMergedWithinTenSteps) {
  const SpikeRule rule = FromTheStart();
  EXPECT_THAT(RmsSpikes(Pulses(60, {20, 29}, 5), rule), ElementsAre(20));
  EXPECT_THAT(RmsSpikes(Pulses(60, {20, 30}, 5), rule), ElementsAre(20, 30));
  EXPECT_THAT(RmsSpikes(Series(25, 3), rule), ElementsAre(0, 10, 20));
}

// An ignored event does not swallow one that counts.
TEST(RmsSpikes, IgnoreTheStart) {
  EXPECT_THAT(RmsSpikes(Pulses(1100, {0, 995, 999}, 5), SpikeRule()), IsEmpty());
  EXPECT_THAT(RmsSpikes(Pulses(1100, {999, 1000}, 5), SpikeRule()), ElementsAre(1000));
  EXPECT_THAT(RmsSpikes(Series(1021, 5), SpikeRule()), ElementsAre(1000, 1010, 1020));
  EXPECT_THAT(RmsSpikes(Series(1000, 5), SpikeRule()), IsEmpty());
  SpikeRule never;
  never.ignored = kLastStep;
  EXPECT_THAT(RmsSpikes(Series(100, 5), never), IsEmpty());
}

TEST(RmsSpikes, OfRandomSeriesAreThoseOfTheReference) {
  Dice dice(21);
  for (int round = 0; round < 40; ++round) {
    std::vector<double> rms(3000);
    const double rate = 0.3 * dice.Unit();
    for (double& x : rms) {
      x = dice.Hits(0.05) ? kNoNumber : dice.Hits(rate) ? 2.3 : 2.2 * dice.Unit();
    }
    SpikeRule rule;
    rule.ignored = dice.Below(1200);
    rule.merge = 1 + dice.Below(15);
    EXPECT_EQ(RmsSpikes(rms, rule), PlainRmsSpikes(rms, rule));
  }
}

// --- Loss spikes ---

TEST(DeviationSpikes, ExceedTheThreshold) {
  const double above = std::nextafter(3.2, 4.0);
  EXPECT_THAT(DeviationSpikes(Pulses(40, {10, 11}, 3.2), FromTheStart()), IsEmpty());
  EXPECT_THAT(DeviationSpikes(Pulses(40, {10, 11}, above), FromTheStart()), ElementsAre(10));
  EXPECT_THAT(DeviationSpikes(Pulses(40, {10, 11}, kEndless), FromTheStart()), ElementsAre(10));
  EXPECT_THAT(DeviationSpikes(Pulses(40, {10, 11}, -kEndless), FromTheStart()), IsEmpty());
  EXPECT_THAT(DeviationSpikes(Pulses(40, {10, 11}, kNoNumber), FromTheStart()), IsEmpty());
  EXPECT_THAT(DeviationSpikes(Pulses(40, {10, 11}, -9), FromTheStart()), IsEmpty());
}

TEST(DeviationSpikes, HappenAgainWithinTenSteps) {
  const auto spikes = [](const Steps& at) {
    return DeviationSpikes(Pulses(100, at, 9), FromTheStart());
  };
  EXPECT_THAT(spikes({40}), IsEmpty());
  EXPECT_THAT(spikes({40, 49}), ElementsAre(40));
  EXPECT_THAT(spikes({40, 50}), IsEmpty());
  EXPECT_THAT(spikes({40, 50, 59}), ElementsAre(50));
  EXPECT_THAT(spikes({40, 49, 58}), ElementsAre(40));
  EXPECT_THAT(spikes({40, 41, 50, 51}), ElementsAre(40, 50));
  EXPECT_THAT(spikes({40, 41, 49, 51}), ElementsAre(40));
  EXPECT_THAT(spikes({99}), IsEmpty());
  EXPECT_THAT(spikes({98, 99}), ElementsAre(98));
}

TEST(DeviationSpikes, NeedAsManyAsConfirm) {
  SpikeRule rule = FromTheStart();
  const auto spikes = [&](const Steps& at) { return DeviationSpikes(Pulses(100, at, 9), rule); };
  rule.confirm = 1;
  EXPECT_THAT(spikes({40, 60, 69, 70}), ElementsAre(40, 60, 70));
  rule.confirm = 3;
  EXPECT_THAT(spikes({40, 41}), IsEmpty());
  EXPECT_THAT(spikes({40, 41, 49}), ElementsAre(40));
  EXPECT_THAT(spikes({40, 41, 50}), IsEmpty());
  rule.merge = 2;
  EXPECT_THAT(spikes({40, 41, 42, 43}), IsEmpty());
}

// Three are within ten steps from 45 on, not from 40 on.
TEST(DeviationSpikes, BeginWhereTheyAreConfirmed) {
  SpikeRule rule = FromTheStart();
  rule.confirm = 3;
  EXPECT_THAT(DeviationSpikes(Pulses(100, {40, 45, 52, 53}, 9), rule), ElementsAre(45));
}

TEST(DeviationSpikes, WithinAnyNumberOfStepsAreOne) {
  SpikeRule rule = FromTheStart();
  rule.merge = kLastStep;
  EXPECT_THAT(DeviationSpikes(Pulses(100, {5, 90}, 9), rule), ElementsAre(5));
  EXPECT_THAT(DeviationSpikes(Pulses(100, {5}, 9), rule), IsEmpty());
}

TEST(DeviationSpikes, IgnoreTheStart) {
  EXPECT_THAT(DeviationSpikes(Pulses(1100, {998, 999}, 9), SpikeRule()), IsEmpty());
  EXPECT_THAT(DeviationSpikes(Pulses(1100, {999, 1000}, 9), SpikeRule()), IsEmpty());
  EXPECT_THAT(DeviationSpikes(Pulses(1100, {998, 999, 1000, 1001}, 9), SpikeRule()),
              ElementsAre(1000));
  EXPECT_THAT(DeviationSpikes(Series(500, 9), SpikeRule()), IsEmpty());
}

// Compares spikes of random series with the reference.
void ExpectPlainSpikes(uint32_t seed, size_t least, size_t most) {
  Dice dice(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> deviations(2500);
    const double rate = 0.4 * dice.Unit();
    for (double& x : deviations) {
      x = dice.Hits(0.02)   ? kNoNumber
          : dice.Hits(0.01) ? kEndless
          : dice.Hits(rate) ? 3.3
                            : 3.2 * dice.Unit();
    }
    SpikeRule rule;
    rule.ignored = dice.Below(1200);
    rule.merge = 1 + dice.Below(15);
    rule.confirm = least + dice.Below(most - least + 1);
    ASSERT_EQ(DeviationSpikes(deviations, rule), PlainDeviationSpikes(deviations, rule))
        << "merge " << rule.merge << ", confirm " << rule.confirm;
  }
}

TEST(DeviationSpikes, OfRandomSeriesAreThoseOfTheReference) { ExpectPlainSpikes(31, 1, 2); }

TEST(DeviationSpikes, OfRandomSeriesWithThreeOrMoreAreThoseOfTheReference) {
  ExpectPlainSpikes(32, 3, 5);
}

// Losses: `value` at these steps, 1 and 3 in turn at others.
std::vector<double> Wave(size_t size, const Steps& at, double value) {
  std::vector<double> losses;
  for (size_t t = 0; t < size; ++t) losses.push_back(t % 2 == 0 ? 1 : 3);
  for (uint64_t step : at) losses[step] = value;
  return losses;
}

// The second 9 is judged by a window that holds the first.
TEST(LossSpikes, AreLossesFarAboveTheMean) {
  EXPECT_THAT(LossSpikes(Wave(100, {}, 0), FromTheStart()), IsEmpty());
  EXPECT_THAT(LossSpikes(Wave(100, {50}, 9), FromTheStart()), IsEmpty());
  EXPECT_THAT(LossSpikes(Wave(100, {50, 53}, 9), FromTheStart()), ElementsAre(50));
  EXPECT_THAT(LossSpikes(Wave(100, {50, 60}, 9), FromTheStart()), IsEmpty());
  EXPECT_THAT(LossSpikes(Wave(100, {50, 53}, -9), FromTheStart()), IsEmpty());
  EXPECT_THAT(LossSpikes(Wave(100, {50, 53}, 9), SpikeRule()), IsEmpty());
  EXPECT_THAT(LossSpikes(Wave(1100, {990, 993, 1050, 1053}, 9), SpikeRule()), ElementsAre(1050));
}

TEST(LossSpikes, NeedLossesBefore) {
  EXPECT_THAT(LossSpikes(Wave(40, {14, 15}, 9), FromTheStart()), IsEmpty());
  EXPECT_THAT(LossSpikes(Wave(40, {16, 17}, 90), FromTheStart()), ElementsAre(16));
  SpikeRule rule = FromTheStart();
  rule.window = 6;
  rule.deviations = 2.3;  // more than one of six equal losses can have
  EXPECT_THAT(LossSpikes(Wave(40, {6, 7}, 900), rule), IsEmpty());
  rule.confirm = 1;
  EXPECT_THAT(LossSpikes(Wave(40, {6, 7}, 900), rule), ElementsAre(6));
}

TEST(LossSpikes, OfConstantLossesAreNone) {
  for (double level : {0.1, 2.7, 0.0}) {
    EXPECT_THAT(LossSpikes(Series(1500, level), SpikeRule()), IsEmpty());
  }
}

TEST(LossSpikes, AreLossesThatAreNotFinite) {
  for (double loss : {kNoNumber, kEndless}) {
    EXPECT_THAT(LossSpikes(Wave(100, {50}, loss), FromTheStart()), IsEmpty());
    EXPECT_THAT(LossSpikes(Wave(100, {50, 51}, loss), FromTheStart()), ElementsAre(50));
    // A training that diverges.
    std::vector<double> losses = Wave(50, {}, 0);
    losses.resize(75, loss);
    EXPECT_THAT(LossSpikes(losses, FromTheStart()), ElementsAre(50, 60, 70));
  }
}

TEST(LossSpikes, OfRandomLossesAreThoseOfTheReference) {
  Dice dice(41);
  size_t found = 0;
  for (uint32_t round = 0; round < 20; ++round) {
    const std::vector<double> losses = RoughLosses(3000, 100 + round);
    SpikeRule rule;
    rule.window = 2 + dice.Below(200);
    rule.ignored = dice.Below(1200);
    rule.merge = 1 + dice.Below(15);
    rule.confirm = 1 + dice.Below(2);
    rule.deviations = 2 + 2 * dice.Unit();
    std::vector<double> deviations;
    for (size_t t = 0; t < losses.size(); ++t) {
      deviations.push_back(PlainDeviation(losses, t, rule.window));
    }
    const Steps want = PlainDeviationSpikes(deviations, rule);
    EXPECT_EQ(LossSpikes(losses, rule), want) << "window " << rule.window;
    EXPECT_EQ(DeviationSpikes(LossDeviations(losses, rule.window), rule), want);
    found += want.size();
  }
  EXPECT_GT(found, 100u);
}

// --- Steps lost ---

SpikeRule MergeOf(uint64_t merge) {
  SpikeRule rule = FromTheStart();
  rule.merge = merge;
  return rule;
}

// Means since the spike at 4: 9, 5, then of the last two 1. The step that ends it counts.
TEST(StepsLost, CountsUntilTheMeanIsThatOfBefore) {
  const std::vector<double> losses = {1, 1, 1, 1, 9, 1, 1, 1, 1, 1};
  EXPECT_EQ(StepsLost(losses, Steps{4}, MergeOf(2)), 3u);
  EXPECT_EQ(StepsLost(losses, Steps{4}, MergeOf(3)), 4u);
  EXPECT_EQ(StepsLost(losses, Steps{4}, MergeOf(1)), 2u);
}

// Before: (2 + 4) / 2. Means since the spike at 3: 9, 7, 4, then 3, or 3.25 and 2.75.
TEST(StepsLost, EndsAsSoonAsTheMeanIsNotAbove) {
  EXPECT_EQ(StepsLost(std::vector<double>{90, 2, 4, 9, 5, 3, 3, 3}, Steps{3}, MergeOf(2)), 4u);
  EXPECT_EQ(StepsLost(std::vector<double>{90, 2, 4, 9, 5, 3, 3.5, 2}, Steps{3}, MergeOf(2)), 5u);
  // A mean that falls at once, before there are `merge` losses since the beginning.
  EXPECT_EQ(StepsLost(std::vector<double>{2, 2, 2, 2, 3, 1, 2, 9, 9}, Steps{4}, MergeOf(4)), 2u);
}

TEST(StepsLost, WithoutSpikesIsNone) {
  EXPECT_EQ(StepsLost({}, {}, SpikeRule()), 0u);
  EXPECT_EQ(StepsLost(Wave(100, {50, 51}, 9), {}, SpikeRule()), 0u);
}

TEST(StepsLost, OfALossThatNeverRecoversIsTheRest) {
  std::vector<double> losses = Series(50, 1);
  losses.resize(120, 3);
  EXPECT_EQ(StepsLost(losses, Steps{50}, SpikeRule()), 70u);
  // All further spikes are part of the first.
  EXPECT_EQ(StepsLost(losses, Steps{50, 60, 70, 119}, SpikeRule()), 70u);
  losses.back() = 4;
  EXPECT_EQ(StepsLost(losses, Steps{119}, SpikeRule()), 1u);
}

TEST(StepsLost, OfALossThatBecomesNaNOrInfiniteIsTheRest) {
  for (double loss : {kNoNumber, kEndless}) {
    std::vector<double> losses = Series(50, 1);
    losses.resize(120, loss);
    EXPECT_EQ(StepsLost(losses, Steps{50, 60}, SpikeRule()), 70u);
  }
}

// The mean holds it for ten steps, and no sum keeps it.
TEST(StepsLost, OfOneLossThatIsNotFiniteAreFew) {
  for (double loss : {kNoNumber, kEndless, 1e300}) {
    std::vector<double> losses = Series(100, 0.1);
    losses[50] = loss;
    EXPECT_EQ(StepsLost(losses, Steps{50}, SpikeRule()), 11u) << loss;
  }
}

// A pulse stays in the mean for ten steps; the eleventh ends the spike.
TEST(RecoverySteps, OfASpikeWithinARecoveryAreThoseOfTheFirst) {
  const auto steps = [](const Steps& pulses, const Steps& spikes) {
    return RecoverySteps(Pulses(100, pulses, 9), spikes, SpikeRule());
  };
  EXPECT_THAT(steps({}, {}), IsEmpty());
  EXPECT_THAT(steps({40}, {40}), ElementsAre(11));
  EXPECT_THAT(steps({40, 45}, {40, 45}), ElementsAre(16, 0));
  EXPECT_THAT(steps({40, 45}, {40}), ElementsAre(16));
  EXPECT_THAT(steps({40, 49}, {40, 49}), ElementsAre(20, 0));
  EXPECT_THAT(steps({40, 50}, {40, 50}), ElementsAre(21, 0));
  EXPECT_THAT(steps({40, 45, 70, 95}, {40, 45, 70, 95}), ElementsAre(16, 0, 11, 5));
  EXPECT_THAT(steps({40, 70}, {70}), ElementsAre(11));
  EXPECT_EQ(StepsLost(Pulses(100, {40, 45, 70, 95}, 9), Steps{40, 45, 70, 95}, SpikeRule()), 32u);
}

// With merge 2 the spike at 4 ends at 5. The mean before 6 is 4: the spike there ends at once.
TEST(RecoverySteps, ASpikeAfterTheStepOfRecoveryIsAnother) {
  const std::vector<double> losses = {4, 4, 4, 4, 6, 2, 4, 4};
  EXPECT_THAT(RecoverySteps(losses, Steps{4, 5}, MergeOf(2)), ElementsAre(2, 0));
  EXPECT_THAT(RecoverySteps(losses, Steps{4, 6}, MergeOf(2)), ElementsAre(2, 1));
}

// Whole numbers: their means compare exactly, equal ones too.
TEST(RecoverySteps, OfRandomLossesAreThoseOfTheReference) {
  Dice dice(51);
  for (int round = 0; round < 60; ++round) {
    const uint64_t merge = uint64_t{1} << dice.Below(5);
    std::vector<double> losses;
    double extra = 0;
    for (int t = 0; t < 2000; ++t) {
      extra = dice.Hits(0.02) ? static_cast<double>(dice.Below(200)) : std::floor(0.9 * extra);
      losses.push_back(extra + static_cast<double>(dice.Below(8)));
    }
    const Steps spikes = dice.Some(merge, losses.size(), 0.05 * dice.Unit());
    const Steps want = PlainRecoverySteps(losses, spikes, merge);
    ASSERT_EQ(RecoverySteps(losses, spikes, MergeOf(merge)), want) << "merge " << merge;
    EXPECT_EQ(StepsLost(losses, spikes, MergeOf(merge)),
              std::accumulate(want.begin(), want.end(), uint64_t{0}));
  }
}

// --- Prediction ---

Prediction PredictOne(const EventSeries& series, const SpikeRule& rule = SpikeRule()) {
  return Predict(std::span(&series, 1), rule);
}

TEST(Predict, LeadsOneToEightCount) {
  for (uint64_t lead = 0; lead <= 12; ++lead) {
    const bool counts = 1 <= lead && lead <= 8;
    const Prediction got = PredictOne({0, 500, {100}, {100 + lead}});
    EXPECT_EQ(got.predicted, counts) << lead;
    EXPECT_EQ(got.followed, counts) << lead;
    if (counts) {
      EXPECT_EQ(got.lead, static_cast<double>(lead));
      EXPECT_NEAR(got.p, 8 / 500.0, 1e-12);
    } else {
      EXPECT_TRUE(std::isnan(got.lead)) << lead;
      EXPECT_NEAR(got.p, 1, 1e-12);
    }
    EXPECT_NEAR(got.expected, 8 / 500.0, 1e-12);
    // A spike does not follow an event after it.
    EXPECT_EQ(PredictOne({0, 500, {100}, {100 - lead}}).predicted, 0u) << lead;
  }
}

TEST(Predict, TheLeadIsThatOfTheFirstEventThatPredicts) {
  EXPECT_EQ(PredictOne({0, 200, {93, 99}, {100}}).lead, 7);
  EXPECT_EQ(PredictOne({0, 200, {91, 99}, {100}}).lead, 1);
  EXPECT_EQ(PredictOne({0, 200, {92, 93, 150}, {100, 155, 190}}).lead, (8 + 5) / 2.0);
}

TEST(Predict, CountsSpikesAndEventsApart) {
  // Two events before one spike, one event before two spikes, one of each alone.
  const Prediction got =
      PredictOne({0, 1000, {100, 103, 300, 500}, {105, 302, 307, 700}}, SpikeRule());
  EXPECT_EQ(got.events, 4u);
  EXPECT_EQ(got.spikes, 4u);
  EXPECT_EQ(got.predicted, 3u);
  EXPECT_EQ(got.followed, 3u);
  EXPECT_EQ(got.Recall(), 0.75);
  EXPECT_EQ(got.Precision(), 0.75);
  const Prediction few = PredictOne({0, 1000, {100, 200, 300, 400}, {105, 700}}, SpikeRule());
  EXPECT_EQ(few.Recall(), 0.5);
  EXPECT_EQ(few.Precision(), 0.25);
}

TEST(Predict, WithoutEventsOrSpikesIsTrivial) {
  const auto trivial = [](const Prediction& got) {
    EXPECT_EQ(got.predicted, 0u);
    EXPECT_EQ(got.followed, 0u);
    EXPECT_TRUE(std::isnan(got.lead));
    EXPECT_EQ(got.expected, 0);
    EXPECT_NEAR(got.p, 1, 1e-12);
  };
  const Prediction none = Predict({}, SpikeRule());
  trivial(none);
  EXPECT_TRUE(std::isnan(none.Recall()));
  EXPECT_TRUE(std::isnan(none.Precision()));
  trivial(PredictOne({}));
  trivial(PredictOne({10, 50, {}, {}}));
  const Prediction spikes = PredictOne({10, 50, {}, {20, 40}});
  trivial(spikes);
  EXPECT_EQ(spikes.Recall(), 0);
  EXPECT_TRUE(std::isnan(spikes.Precision()));
  const Prediction events = PredictOne({10, 50, {20, 40}, {}});
  trivial(events);
  EXPECT_TRUE(std::isnan(events.Recall()));
  EXPECT_EQ(events.Precision(), 0);
}

// An event at each step: every shift predicts every spike but one at the first step.
TEST(Predict, ByEventsEverywhereIsNoEvidence) {
  Steps all(40);
  std::iota(all.begin(), all.end(), 5);
  const Prediction got = PredictOne({5, 45, all, {5, 20, 30}});
  EXPECT_EQ(got.predicted, 2u);
  EXPECT_NEAR(got.expected, 2, 1e-12);
  EXPECT_NEAR(got.p, 1, 1e-12);
}

// Events go round at the end of the steps, leads do not: no event is before step 10.
TEST(Predict, ShiftsEventsAlongTheCircle) {
  SpikeRule rule;
  rule.first_lead = 1;
  rule.last_lead = 2;
  const Prediction middle = PredictOne({10, 30, {27}, {20}}, rule);
  EXPECT_NEAR(middle.expected, 2 / 20.0, 1e-12);
  EXPECT_NEAR(PredictOne({10, 30, {29}, {11}}, rule).expected, 1 / 20.0, 1e-12);
  EXPECT_NEAR(PredictOne({10, 30, {29}, {10}}, rule).expected, 0, 1e-12);
  // Two events, seven apart like the spikes: 2 of 20 shifts predict both, 2 + 2 one.
  const Prediction two = PredictOne({10, 30, {12, 19}, {14, 21}}, rule);
  EXPECT_EQ(two.predicted, 2u);
  EXPECT_NEAR(two.p, 2 / 20.0, 1e-12);
  EXPECT_NEAR(two.expected, 8 / 20.0, 1e-12);
}

TEST(Predict, LeadsBeyondTheSeriesDoNotOverflow) {
  SpikeRule rule;
  rule.last_lead = kLastStep;
  const Prediction got = PredictOne({0, 50, {3, 45}, {40}}, rule);
  EXPECT_EQ(got.predicted, 1u);
  EXPECT_EQ(got.lead, 37);
  EXPECT_EQ(got.followed, 1u);
  ExpectSame(got, PlainPrediction({{0, 50, {3, 45}, {40}}}, rule));
  const EventSeries late = {kLastStep - 40, kLastStep, {kLastStep - 9}, {kLastStep - 1}};
  EXPECT_EQ(PredictOne(late).predicted, 1u);
  EXPECT_NEAR(PredictOne(late).expected, 8 / 40.0, 1e-12);
  EXPECT_NEAR(PredictOne(late).p, 8 / 40.0, 1e-12);
}

// Trainings of one event and one spike: the number predicted is binomial.
TEST(Predict, OfManyTrainingsIsExactInTheFarTail) {
  std::vector<EventSeries> all(15, EventSeries{1000, 1100, {1040}, {1045}});
  all[3].events = {1060};
  const Prediction got = Predict(all, SpikeRule());
  EXPECT_EQ(got.predicted, 14u);
  EXPECT_EQ(got.spikes, 15u);
  EXPECT_NEAR(got.expected, 15 * 0.08, 1e-12);
  const double p = 15 * std::pow(0.08, 14) * 0.92 + std::pow(0.08, 15);
  EXPECT_NEAR(got.p, p, 1e-10 * p);
}

TEST(Predict, OfSmallTrainingsCountsAllCombinationsOfShifts) {
  Dice dice(61);
  for (int round = 0; round < 300; ++round) {
    SpikeRule rule;
    rule.first_lead = 1 + dice.Below(4);
    rule.last_lead = rule.first_lead + dice.Below(8);
    std::vector<EventSeries> all(1 + dice.Below(3));
    const double events = dice.Unit() * dice.Unit(), spikes = dice.Unit() * dice.Unit();
    for (EventSeries& series : all) {
      series.first = dice.Below(50);
      series.last = series.first + 1 + dice.Below(25);
      series.events = dice.Some(series.first, series.last, events);
      series.spikes = dice.Some(series.first, series.last, spikes);
    }
    ExpectSame(Predict(all, rule), PlainPrediction(all, rule));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Predict, OfLongTrainingsCountsAllCombinationsOfShifts) {
  Dice dice(71);
  for (int round = 0; round < 4; ++round) {
    std::vector<EventSeries> all(2);
    for (EventSeries& series : all) {
      series.first = 1000;
      series.last = 2000 + dice.Below(300);
      series.events = dice.Some(series.first, series.last, 0.01);
      for (uint64_t event : series.events) {
        if (dice.Hits(0.4)) series.spikes.push_back(event + 1 + dice.Below(8));
      }
      for (uint64_t spike : dice.Some(series.first, series.last, 0.003)) {
        series.spikes.push_back(spike);
      }
      std::sort(series.spikes.begin(), series.spikes.end());
      series.spikes.erase(std::unique(series.spikes.begin(), series.spikes.end()),
                          series.spikes.end());
      while (!series.spikes.empty() && series.spikes.back() >= series.last) {
        series.spikes.pop_back();
      }
    }
    const Prediction got = Predict(all, SpikeRule());
    ExpectSame(got, PlainPrediction(all, SpikeRule()));
    EXPECT_LT(got.p, 1e-3);
  }
}

// Trainings without steps, events or spikes change no number but those of events and spikes.
TEST(Predict, TrainingsWithoutEventsOrSpikesChangeNothing) {
  const EventSeries one = {0, 60, {20, 50}, {24}};
  const std::vector<EventSeries> more = {{}, one, {7, 7, {}, {}}, {0, 30, {4, 9}, {}}};
  const Prediction alone = PredictOne(one);
  const Prediction got = Predict(more, SpikeRule());
  EXPECT_EQ(got.events, 4u);
  EXPECT_EQ(got.spikes, 1u);
  EXPECT_EQ(got.predicted, alone.predicted);
  EXPECT_EQ(got.lead, alone.lead);
  EXPECT_NEAR(got.expected, alone.expected, 1e-12);
  EXPECT_NEAR(got.p, alone.p, 1e-12);
}

TEST(Predict, RefusesEventsOutsideTheSteps) {
  for (const EventSeries& series : {EventSeries{10, 20, {9}, {}},
                                    EventSeries{10, 20, {20}, {}},
                                    EventSeries{10, 20, {}, {9}},
                                    EventSeries{10, 20, {}, {20}},
                                    EventSeries{10, 20, {}, {15, 9, 16}},
                                    EventSeries{10, 10, {10}, {}}}) {
    EXPECT_NE(ErrorOf([&] { PredictOne(series); }), kNoError);
  }
  EXPECT_EQ(ErrorOf([&] { PredictOne({10, 20, {10, 19}, {10, 19}}); }), kNoError);
}

// RMS spikes and loss spikes that share nothing but a half of the training: over all shifts they seem
// to predict, over short ones they do not.
TEST(Predict, ShortShiftsKeepATrend) {
  EventSeries series{0, 1000, {}, {}};
  for (uint64_t step = 0; step < 500; step += 20) series.events.push_back(step);
  for (uint64_t step = 3; step < 500; step += 7) series.spikes.push_back(step);
  SpikeRule rule;
  const Prediction all = Predict({&series, 1}, rule);
  EXPECT_NEAR(all.expected / static_cast<double>(all.spikes), 0.2, 0.01);
  EXPECT_NEAR(all.Recall(), 0.4, 0.02);
  rule.most_shift = 50;
  const Prediction near = Predict({&series, 1}, rule);
  EXPECT_EQ(near.predicted, all.predicted);
  EXPECT_NEAR(near.expected / static_cast<double>(near.spikes), 0.38, 0.02);
  EXPECT_GT(near.p, 0.05);
  rule.most_shift = 0;
  EXPECT_EQ(Predict({&series, 1}, rule).p, 1);
  rule.most_shift = 500;
  EXPECT_EQ(Predict({&series, 1}, rule).p, all.p);
}

}  // namespace
}  // namespace numsim
