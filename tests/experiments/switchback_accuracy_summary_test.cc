// The claims of `switchback-accuracy` about variants against the baseline, and of the mechanism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/experiments/switchback_accuracy_claims.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SwitchbackClaims, SayWhatTheyAreAbout) {
  AddBaseline(Llama(64));
  const Summary summary = Summarised();
  ASSERT_EQ(summary.claims.size(), kClaims);
  const auto has = [&](size_t claim, const char* text) {
    return summary.claims[claim].claim.find(text) != std::string::npos;
  };
  EXPECT_TRUE(has(kMatchInt8, "int8 SwitchBack matches"));
  EXPECT_TRUE(has(kLlmWorse, "LLM.int8()"));
  EXPECT_TRUE(has(kGrowth, "grows with"));
  EXPECT_TRUE(has(kMechanism, "noise"));
  EXPECT_TRUE(has(kVariants, "SwitchBackM"));
  EXPECT_TRUE(has(kTensorWiseInt8, "In int8 one scale"));
  EXPECT_TRUE(has(kMatchFp8, "fp8 SwitchBack matches"));
  EXPECT_TRUE(has(kTensorWiseFp8, "In fp8"));
  EXPECT_TRUE(has(kGrids, "bitsandbytes"));
}

TEST_F(SwitchbackClaims, AreNotMeasuredWithoutVariants) {
  AddBaseline(Llama(64));
  AddBaseline(Llama(128));
  for (size_t i = 0; i < kClaims; ++i) EXPECT_EQ(VerdictOf(i), "not measured") << i;
}

TEST_F(SwitchbackClaims, AreNotMeasuredWithOneSeed) {
  seeds_ = 1;
  for (const int tokens : {64, 128}) {
    AddSeeds(Llama(tokens), "standard", {1});
    for (const char* const variant : {"switchback:int8",
                                      "switchback-m:int8",
                                      "llm-int8:int8",
                                      "tensor-wise:int8",
                                      "switchback:e4m3fn",
                                      "switchback:bnb-e4m3",
                                      "tensor-wise:e4m3fn"}) {
      AddSeeds(Llama(tokens), variant, {2});
    }
  }
  for (size_t i = 0; i < kClaims; ++i) EXPECT_EQ(VerdictOf(i), "not measured") << i;
  EXPECT_THAT(Summarised().notes, HasSubstr("llama 2x64, 64 tokens: not judged"));
  EXPECT_THAT(MeasuredOf(kLlmWorse), HasSubstr("0.0000 (one seed)"));
  EXPECT_THAT(MeasuredOf(kLlmWorse), HasSubstr("123 steps, 1 seed "));
  EXPECT_THAT(ClaimOf(kLlmWorse).basis, HasSubstr("one seed gives no interval; use --seeds 3"));
}

// Nine of ten suffice; eight of nine do not.
TEST_F(SwitchbackClaims, MatchAllowsOneOfTenBeyondNoise) {
  struct Case {
    size_t within, behind;
    const char* verdict;
  };
  for (const Case& c : {Case{1, 0, "holds"},
                        Case{9, 1, "holds"},
                        Case{18, 2, "holds"},
                        Case{8, 1, "holds in part"},
                        Case{17, 2, "holds in part"},
                        Case{1, 1, "holds in part"},
                        Case{0, 1, "does not hold"}}) {
    for (const size_t claim : {kMatchInt8, kMatchFp8}) {
      rows_.clear();
      for (size_t i = 0; i < c.within + c.behind; ++i) {
        const Group group = Llama(64 * static_cast<int>(i + 1));
        AddBaseline(group);
        AddGaps(group,
                claim == kMatchInt8 ? "switchback:int8" : "switchback:e4m3fn",
                i < c.within ? kNoiseGaps : kBehindGaps);
      }
      EXPECT_EQ(VerdictOf(claim), c.verdict) << c.within << " and " << c.behind;
      EXPECT_EQ(VerdictOf(claim == kMatchInt8 ? kMatchFp8 : kMatchInt8), "not measured");
      EXPECT_EQ(MeasuredOf(claim).find(std::to_string(c.within) + " of " +
                                       std::to_string(c.within + c.behind) + " within noise"),
                0u)
          << MeasuredOf(claim);
    }
  }
}

TEST_F(SwitchbackClaims, MatchIsAboutSwitchbackAlone) {
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:int8", kAheadGaps);  // better is no worse
  AddGaps(Llama(64), "switchback-m:int8", kBehindGaps);
  AddGaps(Llama(64), "llm-int8:int8", kBehindGaps);
  AddGaps(Llama(64), "llm-int8:e4m3fn", kBehindGaps);
  AddGaps(Llama(64), "switchback:fp16", kBehindGaps);
  EXPECT_EQ(VerdictOf(kMatchInt8), "holds");
  EXPECT_EQ(VerdictOf(kMatchFp8), "not measured");
  // Both grids of e4m3 are fp8.
  AddGaps(Llama(64), "switchback:e4m3fn/e5m2", kNoiseGaps);
  AddGaps(Llama(64), "switchback:bnb-e4m3/bnb-e5m2", kBehindGaps);
  EXPECT_EQ(VerdictOf(kMatchFp8), "holds in part");
}

TEST_F(SwitchbackClaims, AVariantThatDivergedDoesNotMatch) {
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:int8", kDivergedGaps);
  EXPECT_EQ(VerdictOf(kMatchInt8), "does not hold");
  EXPECT_THAT(MeasuredOf(kMatchInt8), HasSubstr("1 of 3 seeds diverged"));
}

TEST_F(SwitchbackClaims, WhatABaselineDidNotLearnIsNotJudged) {
  AddSeeds(Clip(64), "standard", {kStart, kStart + 1, kStart});
  AddSeeds(Clip(64), "switchback:int8", {kStart + 1, kStart + 2, kStart + 1});
  AddSeeds(Clip(64), "llm-int8:int8", {kStart + 2, kStart + 3, kStart + 2});
  AddSeeds(Clip(64), "tensor-wise:e4m3fn", {kInf, kInf, kInf});
  for (size_t i = 0; i < kClaims; ++i) EXPECT_EQ(VerdictOf(i), "not measured") << i;
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:int8", kNoiseGaps);
  EXPECT_EQ(VerdictOf(kMatchInt8), "holds");
  const std::string notes = Summarised().notes;
  EXPECT_THAT(notes, HasSubstr("clip 2x64, 64 tokens: not judged"));
  EXPECT_THAT(notes, Not(HasSubstr("llama 2x64, 64 tokens: not judged")));
}

TEST_F(SwitchbackClaims, AgainstABaselineThatDivergedAGapIsUnknown) {
  AddSeeds(Llama(64), "standard", {1, kInf, 2});
  AddSeeds(Llama(64), "switchback:int8", {1, 2, 2});
  EXPECT_EQ(VerdictOf(kMatchInt8), "not measured");
  EXPECT_TRUE(MeasuredOf(kMatchInt8).ends_with("switchback:int8: unknown, a seed diverged: none"))
      << MeasuredOf(kMatchInt8);
}

TEST_F(SwitchbackClaims, NotesNameTheModelsThatWereTrained) {
  AddSeeds(Clip(64, "12x64"), "standard", {1, 2}, {{"parameters", "777"}});
  AddSeeds(Clip(128, "12x64"), "standard", {1, 2}, {{"parameters", "777"}});
  AddSeeds(Clip(64), "standard", {1, 2}, {{"parameters", "555"}});
  AddSeeds(Llama(64), "standard", {1, 2}, {{"parameters", "333"}});
  const std::string notes = Summarised().notes;
  EXPECT_EQ(notes.find("Trained: clip 12x64 (777 parameters), 2x64 (555 parameters); "
                       "llama 2x64 (333 parameters); 123 steps, 3 seeds."),
            0u)
      << notes;
}

TEST_F(SwitchbackClaims, GapsAreListedWithTheirIntervals) {
  for (size_t i = 0; i < 3; ++i) {
    const std::string seed = std::to_string(i);
    const double loss = kSeeds[i];
    const double hits = 0.25 * static_cast<double>(i);
    Add(Clip(64), "standard", seed, loss, hits);
    Add(Clip(64), "switchback:int8", seed, loss + kBehindGaps[i], hits - 0.125 * (2 - loss / 2));
  }
  const Interval gap = IntervalOf(kBehindGaps);
  const Interval hits = IntervalOf({-0.125 * 1.5, -0.125, 0});
  const double gained = kStart - 7.0 / 3;
  EXPECT_THAT(
      MeasuredOf(kMatchInt8),
      HasSubstr(fmt::format("clip 2x64, 64 tokens, switchback:int8: {:.4f} [{:.4f}, {:.4f}], "
                            "{:.2f} %, accuracy {:+.2f} [{:+.1f}",
                            gap.mean,
                            gap.low,
                            gap.high,
                            100 * gap.mean / gained,
                            100 * hits.mean,
                            100 * hits.low)));
}

TEST_F(SwitchbackClaims, TensorWiseFp8DivergesOrFallsBehind) {
  struct Case {
    std::vector<std::vector<double>> gaps;
    const char* verdict;
  };
  for (const Case& c : {Case{{kDivergedGaps, kDivergedGaps}, "holds"},
                        Case{{kDivergedGaps, kNoiseGaps}, "holds in part"},
                        Case{{kBehindGaps, kNoiseGaps}, "holds in part"},
                        Case{{kBehindGaps, kBehindGaps}, "holds in part"},
                        Case{{kNoiseGaps, kAheadGaps}, "does not hold"}}) {
    rows_.clear();
    AddBaseline(Llama(64));
    AddGaps(Llama(64), "tensor-wise:e4m3fn/e5m2", c.gaps[0]);
    AddGaps(Llama(64), "tensor-wise:bnb-e4m3/bnb-e5m2", c.gaps[1]);
    AddGaps(Llama(64), "tensor-wise:int8", kNoiseGaps);
    AddGaps(Llama(64), "switchback:e4m3fn", kNoiseGaps);
    EXPECT_EQ(VerdictOf(kTensorWiseFp8), c.verdict);
  }
}

// ---- the mechanism: own_error at the most tokens over that at the fewest

TEST_F(SwitchbackClaims, NoiseGrowsForLlmInt8Alone) {
  struct Case {
    double llm, switchback;  // factors
    const char* verdict;
  };
  for (const Case& c : {Case{2, 1, "holds"},
                        Case{2, 0.5, "holds"},
                        Case{1.2, 1.05, "holds"},
                        Case{1.05, 1, "does not hold"},
                        Case{0.5, 1, "does not hold"},
                        Case{2, 1.2, "does not hold"}}) {
    rows_.clear();
    AddBaseline(Llama(64));
    AddOwnErrors(Llama(1024), 0.25 * c.llm, 0.125 * c.switchback);
    AddOwnErrors(Llama(64), 0.25, 0.125);  // fewer tokens, in a text behind "1024"
    AddOwnErrors(Llama(256), 77, 88);
    EXPECT_EQ(VerdictOf(kMechanism), c.verdict) << c.llm << " " << c.switchback;
  }
}

TEST_F(SwitchbackClaims, NoiseOfSomeModelsIsInPart) {
  AddBaseline(Llama(64));
  for (const Group& group : {Llama(64), Llama(64, "4x64"), Clip(64)}) {
    AddOwnErrors(group, 0.25, 0.125);
    AddOwnErrors({group.model, group.size, "128"}, group.model == "clip" ? 0.5 : 0.25, 0.125);
  }
  EXPECT_EQ(VerdictOf(kMechanism), "holds in part");
  const std::string measured = MeasuredOf(kMechanism);
  EXPECT_THAT(measured, HasSubstr("In 1 of 3 cases"));
  EXPECT_THAT(measured,
              HasSubstr("clip 2x64, 64 to 128 tokens: llm-int8 25 % to 50 %, times 2.00; "
                        "switchback 12.5 % to 12.5 %, times 1.00"));
}

TEST_F(SwitchbackClaims, NoiseNeedsTwoBatchesAndBothVariants) {
  AddBaseline(Llama(64));
  AddOwnErrors(Llama(64), 0.25, 0.125);
  EXPECT_EQ(VerdictOf(kMechanism), "not measured");
  AddOwnErrors(Clip(128), 0.5, 0.125);  // another model
  EXPECT_EQ(VerdictOf(kMechanism), "not measured");
  AddGradient(Llama(128), "llm-int8:int8", 1, 0.5);
  AddGradient(Llama(128), "switchback:e4m3fn", 1, 0.125);
  EXPECT_EQ(VerdictOf(kMechanism), "not measured");
  AddGradient(Llama(128), "switchback:int8", kNan, kNan);
  EXPECT_EQ(VerdictOf(kMechanism), "not measured");
  AddGradient(Llama(128), "switchback:int8", 1, 0.125);
  EXPECT_EQ(VerdictOf(kMechanism), "holds");
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
