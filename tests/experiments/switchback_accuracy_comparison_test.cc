// The claims of `switchback-accuracy` about variants against each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/switchback_accuracy/comparison.h"
#include "tests/experiments/switchback_accuracy_claims.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kLlm = "llm-int8:int8";

TEST(SwitchbackSame, NeedsAnIntervalWithinFivePercentOfTheGain) {
  EXPECT_EQ(IsSame({0.01, -0.02, 0.04}, 1), Answer::kYes);
  EXPECT_EQ(IsSame({0.01, -0.02, 0.06}, 1), Answer::kUndecided);
  EXPECT_EQ(IsSame({0.01, -0.06, 0.04}, 1), Answer::kUndecided);
  EXPECT_EQ(IsSame({0.01, 0.005, 0.015}, 1), Answer::kNo);
  EXPECT_EQ(IsSame({-0.01, -0.015, -0.005}, 1), Answer::kNo);
  EXPECT_EQ(IsSame({0.01, kNan, kNan}, 1), Answer::kUndecided);
  EXPECT_EQ(IsSame({0, 0, 0}, kNan), Answer::kUndecided);
}

// The seeds of switchback differ by far more than llm-int8 does from it: pairing alone shows it.
TEST_F(SwitchbackClaims, LlmInt8IsWorseAtTheMostTokens) {
  AddAgainstSwitchback(Llama(16384), kLlm, kBehindGaps);
  AddAgainstSwitchback(Llama(2048), kLlm, kNoiseGaps);
  AddAgainstSwitchback(Llama(512), kLlm, kAheadGaps);
  EXPECT_EQ(VerdictOf(kLlmWorse), "holds");
  const Interval difference = IntervalOf(kBehindGaps);
  const std::string measured = MeasuredOf(kLlmWorse);
  EXPECT_THAT(measured, HasSubstr(": 1 of 1 have their 95 % interval above 0"));
  EXPECT_THAT(measured,
              HasSubstr(fmt::format("llama 2x64, 16384 tokens: llm-int8:int8 minus "
                                    "switchback:int8 {:.4f} [{:.4f}, {:.4f}]",
                                    difference.mean,
                                    difference.low,
                                    difference.high)));
  EXPECT_THAT(measured, HasSubstr("At smaller sizes 0 of 2:"));
}

TEST_F(SwitchbackClaims, LlmInt8WorseAtFewTokensAloneIsNotEnough) {
  AddAgainstSwitchback(Llama(2048), kLlm, kBehindGaps);
  AddAgainstSwitchback(Llama(16384), kLlm, kAheadGaps);
  EXPECT_EQ(VerdictOf(kLlmWorse), "does not hold");
  EXPECT_THAT(MeasuredOf(kLlmWorse), HasSubstr("At smaller sizes 1 of 1:"));
}

TEST_F(SwitchbackClaims, AnIntervalThatContainsZeroDecidesNothing) {
  AddAgainstSwitchback(Llama(64), kLlm, kNoiseGaps);
  EXPECT_EQ(VerdictOf(kLlmWorse), "not measured");
  EXPECT_THAT(ClaimOf(kLlmWorse).basis, HasSubstr("1 of 1 undecided"));
  EXPECT_THAT(ClaimOf(kLlmWorse).basis, HasSubstr("123 steps, 3 seeds"));
}

TEST_F(SwitchbackClaims, LlmInt8WorseInSomeModelsIsInPart) {
  AddAgainstSwitchback(Llama(16384), kLlm, kBehindGaps);
  AddAgainstSwitchback(Llama(16384, "4x64"), kLlm, kBehindGaps);
  EXPECT_EQ(VerdictOf(kLlmWorse), "holds");
  AddAgainstSwitchback(Clip(64), kLlm, kAheadGaps);
  EXPECT_EQ(VerdictOf(kLlmWorse), "holds in part");
  EXPECT_THAT(MeasuredOf(kLlmWorse), HasSubstr(": 2 of 3 have"));
  EXPECT_THAT(MeasuredOf(kLlmWorse), Not(HasSubstr("At smaller sizes")));
}

TEST_F(SwitchbackClaims, AtTheMostTokensWithoutAVerdictNothingIsMeasured) {
  AddAgainstSwitchback(Llama(2048), kLlm, kBehindGaps);
  AddSeeds(Llama(16384), "standard", {kStart, kStart, kStart});
  AddSeeds(Llama(16384), "switchback:int8", {1, 2, 3});
  AddSeeds(Llama(16384), kLlm, {2, 3, 4});
  EXPECT_EQ(VerdictOf(kLlmWorse), "not measured");
  EXPECT_THAT(MeasuredOf(kLlmWorse), HasSubstr("At smaller sizes 1 of 1:"));
}

TEST_F(SwitchbackClaims, WhatDivergedIsWorse) {
  struct Case {
    std::vector<double> switchback, llm;
    const char* verdict;
    const char* text;
  };
  for (const Case& c :
       {Case{kNoiseGaps, kDivergedGaps, "holds", "(llm-int8:int8 diverged)"},
        Case{kDivergedGaps, kBehindGaps, "does not hold", "(switchback:int8 diverged)"},
        Case{kDivergedGaps, kDivergedGaps, "not measured", "(both diverged)"}}) {
    rows_.clear();
    AddBaseline(Llama(64));
    AddGaps(Llama(64), "switchback:int8", c.switchback);
    AddGaps(Llama(64), kLlm, c.llm);
    EXPECT_EQ(VerdictOf(kLlmWorse), c.verdict);
    EXPECT_THAT(MeasuredOf(kLlmWorse), HasSubstr(c.text));
  }
}

TEST_F(SwitchbackClaims, TensorWiseInt8IsComparedWithSwitchback) {
  AddAgainstSwitchback(Llama(64), "tensor-wise:int8", kBehindGaps);
  EXPECT_EQ(VerdictOf(kTensorWiseInt8), "holds");
  EXPECT_EQ(VerdictOf(kLlmWorse), "not measured");
  AddAgainstSwitchback(Clip(64), "tensor-wise:int8", kNoiseGaps);
  EXPECT_EQ(VerdictOf(kTensorWiseInt8), "holds in part");  // the second is undecided
}

// In fp8 there is no claim about either.
TEST_F(SwitchbackClaims, Fp8IsNotInt8) {
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:e4m3fn", kNoiseGaps);
  AddGaps(Llama(64), "llm-int8:e4m3fn", kBehindGaps);
  AddGaps(Llama(64), "tensor-wise:e4m3fn/e5m2", kBehindGaps);
  AddGaps(Llama(64), "switchback-m:e4m3fn", kBehindGaps);
  AddGaps(Llama(64), "tensor-wise:int8", kBehindGaps);
  AddGaps(Llama(64), kLlm, kBehindGaps);
  for (const size_t claim : {kLlmWorse, kGrowth, kVariants, kTensorWiseInt8}) {
    EXPECT_EQ(VerdictOf(claim), "not measured") << claim;
  }
}

// ---- growth with batch x sequence

TEST_F(SwitchbackClaims, GapGrowsFromTheFewestToTheMostTokens) {
  struct Case {
    std::vector<double> few, many;
    const char* verdict;
  };
  const std::vector<double> scattered = {0.125, 0.25, -0.0625};
  for (const Case& c :
       {Case{{0.25, -0.25, 0.125}, {0.375, 0, 0.3125}, "holds"},  // neither alone has a sign
        Case{kNoiseGaps, kNoiseGaps, "does not hold"},
        Case{kNoiseGaps, scattered, "not measured"},  // its interval contains 0
        Case{kBehindGaps, kAheadGaps, "does not hold"}}) {
    rows_.clear();
    AddAgainstSwitchback(Llama(1024), kLlm, c.many);
    AddAgainstSwitchback(Llama(64), kLlm, c.few);
    AddAgainstSwitchback(Llama(256), kLlm, {9, 9, 9});
    EXPECT_EQ(VerdictOf(kGrowth), c.verdict);
    std::vector<double> growth;
    for (size_t i = 0; i < 3; ++i) growth.push_back(c.many[i] - c.few[i]);
    EXPECT_THAT(MeasuredOf(kGrowth),
                HasSubstr(fmt::format("llama 2x64, 1024 tokens minus 64: {:.4f} [",
                                      IntervalOf(growth).mean)));
  }
}

TEST_F(SwitchbackClaims, GapOfSomeModelsGrowsInPart) {
  for (const Group& group : {Llama(64), Clip(64), Llama(64, "4x64")}) {
    AddAgainstSwitchback(group, kLlm, kNoiseGaps);
    AddAgainstSwitchback({group.model, group.size, "128"},
                         kLlm,
                         group.model == "clip" ? std::vector<double>{2, 2.25, 1.5} : kNoiseGaps);
  }
  EXPECT_EQ(VerdictOf(kGrowth), "holds in part");
  EXPECT_THAT(MeasuredOf(kGrowth), HasSubstr(": 1 of 3 have"));
}

TEST_F(SwitchbackClaims, GrowthNeedsTwoBatchesOfAModel) {
  AddAgainstSwitchback(Llama(64), kLlm, kNoiseGaps);
  AddAgainstSwitchback(Llama(128, "4x64"), kLlm, kBehindGaps);
  AddAgainstSwitchback(Clip(256), kLlm, kBehindGaps);
  EXPECT_EQ(VerdictOf(kGrowth), "not measured");
  EXPECT_EQ(MeasuredOf(kGrowth).find("Two values of batch x sequence"), 0u);
}

TEST_F(SwitchbackClaims, GrowthIsUnknownWhereABaselineDidNotLearn) {
  for (const int unlearned : {64, 128}) {
    rows_.clear();
    for (const int tokens : {64, 128}) {
      if (tokens != unlearned) {
        AddAgainstSwitchback(Llama(tokens), kLlm, kBehindGaps);
        continue;
      }
      AddSeeds(Llama(tokens), "standard", {kStart, kStart, kStart});
      AddSeeds(Llama(tokens), "switchback:int8", {1, 1, 1});
      AddSeeds(Llama(tokens), kLlm, {tokens < 100 ? 0.0 : 2.0, tokens < 100 ? 0.0 : 2.0, 1});
    }
    EXPECT_EQ(VerdictOf(kGrowth), "not measured") << unlearned;
  }
}

// A difference of what diverged says nothing, whichever variant and batch it was.
TEST_F(SwitchbackClaims, GrowthIsUnknownWhereASeedDiverged) {
  for (const int tokens : {64, 128}) {
    for (const char* const diverged : {"switchback:int8", kLlm}) {
      rows_.clear();
      AddAgainstSwitchback(Llama(192 - tokens), kLlm, kNoiseGaps);
      AddBaseline(Llama(tokens));
      for (const char* const variant : {"switchback:int8", kLlm}) {
        AddGaps(Llama(tokens), variant, variant == diverged ? kDivergedGaps : kNoiseGaps);
      }
      EXPECT_EQ(VerdictOf(kGrowth), "not measured") << tokens << " " << diverged;
      EXPECT_THAT(MeasuredOf(kGrowth), HasSubstr("unknown, a seed diverged"));
    }
  }
}

// ---- switchback-m, switchback-q

TEST_F(SwitchbackClaims, MAndQAreSwitchbackWhenIntervalsHaveZero) {
  AddAgainstSwitchback(Llama(64), "switchback-m:int8", kNoiseGaps);
  EXPECT_EQ(VerdictOf(kVariants), "holds");
  AddGaps(Llama(64), "switchback-q:int8", {7, 7.5, 8});
  EXPECT_EQ(VerdictOf(kVariants), "holds in part");
  AddAgainstSwitchback(Clip(64), "switchback-q:int8", kAheadGaps);  // better is a difference too
  EXPECT_THAT(MeasuredOf(kVariants), HasSubstr(": 1 of 3 intervals contain 0"));
  rows_.clear();
  AddAgainstSwitchback(Clip(64), "switchback-q:int8", kAheadGaps);
  EXPECT_EQ(VerdictOf(kVariants), "does not hold");
}

// An interval that contains 0 and 10 % of what the baseline gained is no agreement.
TEST_F(SwitchbackClaims, WideIntervalsAreNoAgreement) {
  AddAgainstSwitchback(Llama(64), "switchback-m:int8", kWideGaps);
  EXPECT_EQ(VerdictOf(kVariants), "not measured");
  rows_.clear();
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:int8", kWideGaps);
  AddGaps(Llama(64), "switchback:e4m3fn", kWideGaps);
  AddGaps(Llama(64), "switchback:bnb-e4m3", kNoiseGaps);
  EXPECT_EQ(VerdictOf(kMatchInt8), "not measured");
  EXPECT_THAT(MeasuredOf(kMatchInt8), HasSubstr("within noise, undecided"));
  EXPECT_EQ(VerdictOf(kMatchFp8), "holds in part");
  EXPECT_EQ(VerdictOf(kGrids), "not measured");
}

TEST_F(SwitchbackClaims, MAndQMayDifferInOneOfTen) {
  for (int i = 0; i < 10; ++i) {
    AddAgainstSwitchback(Llama(64 << i), "switchback-m:int8", i == 9 ? kBehindGaps : kNoiseGaps);
  }
  EXPECT_EQ(VerdictOf(kVariants), "holds");
  AddGaps(Llama(64), "switchback-q:int8", {9, 9.5, 9.25});
  EXPECT_EQ(VerdictOf(kVariants), "holds in part");
}

// ---- grids

TEST_F(SwitchbackClaims, GridsAreComparedWhereBothAreThere) {
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:e4m3fn", kNoiseGaps);
  AddGaps(Llama(64), "switchback:bnb-e4m3/bnb-e5m2", kBehindGaps);  // not of these formats
  AddGaps(Llama(64), "tensor-wise:bnb-e4m3/bnb-e4m3", kBehindGaps);
  AddGaps(Llama(64), "switchback:int8", kNoiseGaps);
  EXPECT_EQ(VerdictOf(kGrids), "not measured");
  AddGaps(Llama(64), "switchback:bnb-e4m3", kNoiseGaps);
  EXPECT_EQ(VerdictOf(kGrids), "holds");
  EXPECT_THAT(MeasuredOf(kGrids), HasSubstr("switchback:bnb-e4m3 minus switchback:e4m3fn"));
  AddGaps(Llama(64), "switchback:e4m3fn/e5m2", kAheadGaps);
  EXPECT_EQ(VerdictOf(kGrids), "holds in part");
  rows_.clear();
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "tensor-wise:e4m3fn/e5m2", kBehindGaps);
  AddGaps(Llama(64), "tensor-wise:bnb-e4m3/bnb-e5m2", kDivergedGaps);
  EXPECT_EQ(VerdictOf(kGrids), "does not hold");
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
