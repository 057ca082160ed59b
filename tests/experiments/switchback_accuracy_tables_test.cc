// Tests what `switchback-accuracy` derives from its tables: gaps and errors of gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/experiments/switchback_accuracy_fixture.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

const char* const kVariant = "switchback:int8";

// Of ends of intervals: the printed quantiles have six decimals.
double ToleranceFor(const Interval& interval) {
  return 1e-6 * (interval.high - interval.mean) + 1e-9;
}

TEST_F(SwitchbackTables, GapsArePairedBySeedWithStudentsInterval) {
  const std::vector<double> baseline = {1, 3, 2, 4, 3.5}, gaps = {0.5, 0.25, 0.375, 0.75, 0.125};
  for (const size_t n : {3u, 4u, 5u}) {
    Clear();
    std::vector<double> losses, some_gaps(gaps.begin(), gaps.begin() + static_cast<long>(n));
    for (size_t i = 0; i < n; ++i) {
      Add(Llama(64), "standard", std::to_string(7 + i), baseline[i]);
      losses.push_back(baseline[i] + gaps[i]);
    }
    // In another order; "10" is behind "7" in number and before it in the order of texts.
    for (size_t i = n; i-- > 0;) {
      Add(Llama(64), kVariant, std::to_string(7 + i), losses[i]);
    }
    const Interval gap = IntervalOf(some_gaps), loss = IntervalOf(losses);
    EXPECT_EQ(Gap(Llama(64), kVariant, "seeds"), static_cast<double>(n));
    EXPECT_EQ(Gap(Llama(64), kVariant, "diverged"), 0);
    EXPECT_NEAR(Gap(Llama(64), kVariant, "gap"), gap.mean, 1e-12);
    EXPECT_NEAR(Gap(Llama(64), kVariant, "gap_low"), gap.low, ToleranceFor(gap));
    EXPECT_NEAR(Gap(Llama(64), kVariant, "gap_high"), gap.high, ToleranceFor(gap));
    EXPECT_NEAR(Gap(Llama(64), kVariant, "valid_loss"), loss.mean, 1e-12);
    EXPECT_NEAR(Gap(Llama(64), kVariant, "valid_loss_low"), loss.low, ToleranceFor(loss));
    EXPECT_NEAR(Gap(Llama(64), kVariant, "valid_loss_high"), loss.high, ToleranceFor(loss));
  }
}

TEST_F(SwitchbackTables, EqualGapsHaveAnIntervalOfNoWidth) {
  AddBaseline(Llama(64));
  AddGaps(Llama(64), kVariant, {0, 0, 0});
  AddGaps(Llama(64), "llm-int8:int8", {0.0625, 0.0625, 0.0625});
  EXPECT_EQ(Gap(Llama(64), kVariant, "gap_low"), 0);
  EXPECT_EQ(Gap(Llama(64), kVariant, "gap_high"), 0);
  EXPECT_EQ(Gap(Llama(64), "llm-int8:int8", "gap_low"), 0.0625);
}

TEST_F(SwitchbackTables, TheBaselineHasNoGapToItself) {
  AddBaseline(Llama(64));
  for (const char* const column : {"gap", "gap_low", "gap_high", "gap_share"}) {
    EXPECT_EQ(Gap(Llama(64), "standard", column), 0) << column;
  }
}

// The mean start is 6, the baseline's mean end 3: it gained 3.
TEST_F(SwitchbackTables, ShareIsOfWhatTheBaselineGained) {
  AddSeeds(Llama(64), "standard", {2, 4}, {{"start_loss", "6"}});
  AddSeeds(Llama(64), kVariant, {2.5, 4.25}, {{"start_loss", "100"}});
  EXPECT_DOUBLE_EQ(Gap(Llama(64), kVariant, "gap_share"), 0.375 / 3);
}

TEST_F(SwitchbackTables, GroupsAndVariantsAreKeptApart) {
  const std::vector<Group> groups = {
      Llama(64), Llama(128), Llama(64, "4x64"), Clip(64), Clip(64, "4x64")};
  const std::vector<std::string> variants = {
      "standard", "tensor-wise:e4m3fn/e4m3fn", "tensor-wise:e4m3fn/e5m2", "llm-int8:e4m3fn"};
  double gap = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& variant : variants) {
      const double losses = 1 + 0.25 * static_cast<double>(g);
      const double own = variant == "standard" ? 0 : (gap += 0.0078125);
      AddSeeds(groups[g],
               variant,
               {losses + own, losses + own},
               {{"parameters", std::to_string(100 + g)}});
    }
  }
  const Frame gaps = results_.Of("gaps");
  ASSERT_EQ(gaps.Size(), groups.size() * variants.size());
  gap = 0;
  for (size_t r = 0; r < gaps.Size(); ++r) {
    const std::string& variant = variants[r % variants.size()];
    const Group& group = groups[r / variants.size()];
    EXPECT_EQ(gaps.Text(r, "model"), group.model);
    EXPECT_EQ(gaps.Text(r, "size"), group.size);
    EXPECT_EQ(gaps.Text(r, "tokens"), group.tokens);
    EXPECT_EQ(gaps.Text(r, "kind"), ParseVariant(variant).kind);
    EXPECT_EQ(gaps.Text(r, "gradient_format"), ParseVariant(variant).gradient_format);
    EXPECT_EQ(gaps.Number(r, "gap"), variant == "standard" ? 0 : (gap += 0.0078125)) << r;
    EXPECT_EQ(gaps.Number(r, "seeds"), 2);
    EXPECT_EQ(gaps.Number(r, "parameters"), 100.0 + static_cast<double>(r / variants.size()));
  }
}

TEST_F(SwitchbackTables, DivergedSeedsAreCountedAndLeaveNoGap) {
  AddBaseline(Llama(64));
  AddSeeds(Llama(64), kVariant, {0.5, kInf, 3});
  AddSeeds(Llama(64), "llm-int8:int8", {kInf, kInf, kInf});
  AddGaps(Llama(64), "tensor-wise:int8", {0.125, 0.25, 0.1875});
  EXPECT_EQ(Gap(Llama(64), kVariant, "seeds"), 3);
  EXPECT_EQ(Gap(Llama(64), kVariant, "diverged"), 1);
  EXPECT_EQ(Gap(Llama(64), "llm-int8:int8", "diverged"), 3);
  EXPECT_EQ(Gap(Llama(64), "tensor-wise:int8", "diverged"), 0);
  EXPECT_FALSE(std::isfinite(Gap(Llama(64), kVariant)));
  EXPECT_FALSE(std::isfinite(Gap(Llama(64), kVariant, "valid_loss")));
}

TEST_F(SwitchbackTables, OneSeedHasNoInterval) {
  AddSeeds(Llama(64), "standard", {2});
  AddSeeds(Llama(64), kVariant, {3});
  EXPECT_EQ(Gap(Llama(64), kVariant), 1);
  for (const char* const column : {"gap_low", "gap_high", "valid_loss_low", "valid_loss_high"}) {
    EXPECT_TRUE(std::isnan(Gap(Llama(64), kVariant, column))) << column;
  }
}

TEST_F(SwitchbackTables, ZeroShotGapsArePairedBySeed) {
  const std::vector<double> baseline = {0.25, 0.75, 0.5}, gaps = {-0.125, -0.0625, 0.03125};
  for (size_t i = 0; i < 3; ++i) Add(Clip(64), "standard", std::to_string(i), 1, baseline[i]);
  for (size_t i = 3; i-- > 0;) {
    Add(Clip(64), kVariant, std::to_string(i), 1, baseline[i] + gaps[i]);
  }
  for (const char* const seed : {"0", "1", "2"}) {
    Add(Clip(64), "llm-int8:int8", seed, seed[0] == '1' ? kInf : 1, seed[0] == '1' ? kNan : 0.5);
  }
  AddBaseline(Llama(64));
  AddGaps(Llama(64), kVariant, {0.125, 0.25, 0.1875});
  const Interval gap = IntervalOf(gaps);
  EXPECT_DOUBLE_EQ(Gap(Clip(64), "standard", "zero_shot"), 0.5);
  EXPECT_EQ(Gap(Clip(64), "standard", "zero_shot_gap"), 0);
  EXPECT_NEAR(Gap(Clip(64), kVariant, "zero_shot"), 0.5 + gap.mean, 1e-12);
  EXPECT_NEAR(Gap(Clip(64), kVariant, "zero_shot_gap"), gap.mean, 1e-12);
  EXPECT_NEAR(Gap(Clip(64), kVariant, "zero_shot_gap_low"), gap.low, ToleranceFor(gap));
  EXPECT_NEAR(Gap(Clip(64), kVariant, "zero_shot_gap_high"), gap.high, ToleranceFor(gap));
  for (const char* const column : {"zero_shot", "zero_shot_gap", "zero_shot_gap_low"}) {
    EXPECT_TRUE(std::isnan(Gap(Clip(64), "llm-int8:int8", column))) << column;
    EXPECT_TRUE(std::isnan(Gap(Llama(64), kVariant, column))) << column;
  }
}

TEST_F(SwitchbackTables, ErrorsAreMeansOfLayersStepsAndSeeds) {
  AddGradient(Llama(64), kVariant, 0.5, 0.25, 0.75);
  AddGradient(Llama(64), "llm-int8:int8", 8, 4, -1);
  AddGradient(Llama(64), kVariant, 0.25, 0.0625, 1);
  AddGradient(Llama(64), kVariant, 0.125, 0, 0.5);
  AddGradient(Llama(128), kVariant, 16, 32, 0.125);
  AddGradient(Clip(64), kVariant, 64, 128, 0);
  EXPECT_EQ(results_.Of("gradient_errors").Size(), 4u);
  EXPECT_EQ(ErrorOf(Llama(64), kVariant, "n"), 3);
  EXPECT_DOUBLE_EQ(ErrorOf(Llama(64), kVariant, "error"), 0.875 / 3);
  EXPECT_DOUBLE_EQ(ErrorOf(Llama(64), kVariant, "own_error"), 0.3125 / 3);
  EXPECT_DOUBLE_EQ(ErrorOf(Llama(64), kVariant, "cosine"), 2.25 / 3);
  EXPECT_EQ(ErrorOf(Llama(64), "llm-int8:int8", "cosine"), -1);
  EXPECT_EQ(ErrorOf(Llama(128), kVariant, "own_error"), 32);
  EXPECT_EQ(ErrorOf(Clip(64), kVariant, "error"), 64);
}

// A shadow of zeros has neither error nor cosine, a gradient of zeros no cosine.
TEST_F(SwitchbackTables, ErrorsLeaveOutGradientsThatAreZeroOrNotFinite) {
  AddGradient(Llama(64), kVariant, 0.5, 0.25, 0.75);
  AddGradient(Llama(64), kVariant, kNan, 0.25, kNan);
  AddGradient(Llama(64), kVariant, kInf, 0.25, 0.75);
  AddGradient(Llama(64), kVariant, 0.5, kNan, 0.75);
  AddGradient(Llama(64), kVariant, 0.5, kInf, 0.75);
  AddGradient(Llama(64), kVariant, 1, 1, kNan);
  AddGradient(Llama(64), kVariant, 1.5, 0.75, 0.25);
  AddGradient(Llama(64), "llm-int8:int8", kNan, kNan, kNan);
  EXPECT_EQ(ErrorOf(Llama(64), kVariant, "n"), 2);
  EXPECT_EQ(ErrorOf(Llama(64), kVariant, "error"), 1);
  EXPECT_EQ(ErrorOf(Llama(64), kVariant, "own_error"), 0.5);
  EXPECT_EQ(ErrorOf(Llama(64), kVariant, "cosine"), 0.5);
  EXPECT_EQ(ErrorOf(Llama(64), "llm-int8:int8", "n"), 0);
  EXPECT_TRUE(std::isnan(ErrorOf(Llama(64), "llm-int8:int8", "error")));
  EXPECT_TRUE(std::isnan(ErrorOf(Llama(64), "llm-int8:int8", "own_error")));
}

TEST_F(SwitchbackTables, WithoutGradientsThereAreNoErrors) {
  AddBaseline(Llama(64));
  EXPECT_TRUE(results_.Of("gradient_errors").Empty());
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
