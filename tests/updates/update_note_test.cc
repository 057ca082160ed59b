// The search of the note, as printed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/updates/update_rule.h"
#include "tests/reference/updates/update_exact.h"
#include "tests/reference/updates/update_reference.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Apply;
using update_cases::Arrays;
using update_cases::Case;
using update_cases::DrawHard;
using update_cases::DrawNormal;
using update_cases::ExpectAsDefined;
using update_cases::ExpectSameBits;
using update_cases::MakeCase;
using update_cases::SignedFormats;
using update_reference::Result;

constexpr char kRule[] = "note-as-printed";

Case NoteCase(const std::string& format, Arrays arrays, float learning_rate) {
  return MakeCase(format, kRule, std::move(arrays), learning_rate);
}

// Weights and update from the same draws, as in the note's first figures.
Arrays DrawSameKey(const std::string& format, size_t n) {
  Arrays arrays = DrawNormal(format, n, 7);
  arrays.update = DrawNormal("fp32", n, 7).weights;
  return arrays;
}

TEST(NoteAsPrinted, IsThePrintedProgramInEveryFormat) {
  for (const std::string& format : SignedFormats()) {
    ExpectAsDefined(NoteCase(format, DrawNormal(format, 40, 61), 0.1f));
    ExpectAsDefined(NoteCase(format, DrawNormal(format, 40, 62), 1e-4f));
    Arrays hard = DrawHard(format, 1, 40, 63);
    ExpectAsDefined(NoteCase(format, std::move(hard), 0.01f));
  }
}

TEST(NoteAsPrinted, IsThePrintedProgramAtEveryLearningRate) {
  for (const char* format : {"e4m3fn", "e5m2", "fp16", "bf16"}) {
    for (const float rate : {1.0f, 0.1f, 1e-3f, 1e-6f, 1e-10f}) {
      ExpectAsDefined(NoteCase(format, DrawNormal(format, 80, 64), rate));
      ExpectAsDefined(NoteCase(format, DrawSameKey(format, 80), rate));
    }
  }
}

TEST(NoteAsPrinted, WeightDecayIsPartOfUpdateAndTarget) {
  for (const char* format : {"e4m3fn", "bf16"}) {
    Case c = NoteCase(format, DrawNormal(format, 80, 65), 0.01f);
    c.weight_decay = 0.5f;
    ExpectAsDefined(c);
    c.arrays.update.assign(80, 0.0f);
    ExpectAsDefined(c);
  }
}

TEST(NoteAsPrinted, TakesAStepOfTheRootOfTheLearningRate) {
  const float rate = 1e-4f;
  const Result result = Apply(NoteCase("bf16", DrawNormal("bf16", 1 << 14, 66), rate));
  const UpdateOutcome& outcome = result.outcome;
  ASSERT_EQ(outcome.status, UpdateStatus::kOk);
  const double ratio = outcome.achieved_norm / outcome.target_norm;
  EXPECT_NEAR(ratio * std::sqrt(rate), 1, 0.01);
  // In its own eyes it meets its target, which is that of the projection.
  EXPECT_EQ(outcome.matched_target, outcome.target_projection);
  EXPECT_NEAR(outcome.matched / outcome.matched_target, 1, 0.01);
}

TEST(NoteAsPrinted, ReturnsTheLastCandidateNotTheClosest) {
  // Four equal elements move together: `actual` is 0 or 4 / 64, the target between.
  const Case c = NoteCase("e4m3fn", {std::vector<float>(4, 1), std::vector<float>(4, 0.5f)}, 0.05f);
  ExpectAsDefined(c);
  const Result result = Apply(c);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kNotConverged);
  EXPECT_EQ(result.outcome.passes, 32);
  // It closes in on alpha = 1/8, where a tie to even still rounds back.
  EXPECT_NEAR(result.outcome.alpha, 0.125f, 1e-6f);
  EXPECT_TRUE(result.outcome.matched == 0 || result.outcome.matched == 0.0625);
}

TEST(NoteAsPrinted, NeverGoesBeyondAlphaOne) {
  // Half a gap above 1 is 2^-4: an update of 2^-5 would need alpha > 2.
  const Result result = Apply(NoteCase("e4m3fn", {{1, 1}, {0x1p-5f, 0x1p-5f}}, 1));
  EXPECT_EQ(result.weights, (std::vector<float>{1, 1}));
  EXPECT_EQ(result.outcome.moved, 0u);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kNotConverged);
  EXPECT_GE(result.outcome.alpha, 0x1.fffffcp-1f);
  EXPECT_LE(result.outcome.alpha, 1.0f);
}

TEST(NoteAsPrinted, ToleranceZeroNeverEndsEarly) {
  Case c = NoteCase("bf16", DrawNormal("bf16", 256, 67), 0.1f);
  c.rule.tolerance = 0;
  c.rule.iterations = 9;
  ExpectAsDefined(c);
  const Result result = Apply(c);
  EXPECT_EQ(result.outcome.passes, 9);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kNotConverged);
  // Not even where the target is met to the bit: 1 + 0.5 is a value, and (1/2)^2 = 1/4 the target.
  c = NoteCase("e4m3fn", {{1}, {1}}, 0.25f);
  EXPECT_EQ(Apply(c).outcome.passes, 1);
  c.rule.tolerance = 0;
  EXPECT_EQ(Apply(c).outcome.passes, 32);
}

TEST(NoteAsPrinted, AWideToleranceAcceptsAStepThatMovesNothing) {
  Case c = NoteCase("e4m3fn", {{1}, {0x1p-10f}}, 0.5f);
  c.rule.tolerance = 1.5;
  const Result result = Apply(c);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kBelowMinStep);
  EXPECT_EQ(result.outcome.passes, 1);
  EXPECT_EQ(result.outcome.moved, 0u);
}

TEST(NoteAsPrinted, DifferenceIsRoundedToTheFormat) {
  // From 1 to 20 in e4m3fn the difference 19 is a tie, 18 or 20: 20.
  Case c = NoteCase("e4m3fn", {{1}, {38}}, 0.25f);
  c.rule.iterations = 1;
  const Result result = Apply(c);
  EXPECT_EQ(result.weights[0], 20);
  EXPECT_EQ(result.outcome.matched, 400);
  EXPECT_EQ(result.outcome.matched_target, 361);
  EXPECT_EQ(result.outcome.achieved_norm, 19);
  ExpectAsDefined(c);
}

TEST(NoteAsPrinted, AnOverflowToNanSendsTheSearchDown) {
  // 448 + alpha 448 is NaN in e4m3fn from alpha > 1/28 on; below, nothing moves.
  const Case c = NoteCase("e4m3fn", {{448, 1}, {448, 0}}, 1);
  ExpectAsDefined(c);
  const Result result = Apply(c);
  EXPECT_EQ(result.outcome.passes, 32);
  EXPECT_NEAR(result.outcome.alpha, 1.0 / 28, 1e-6);
}

TEST(NoteAsPrinted, AResultThatIsNotFiniteIsKeptAndReported) {
  for (const char* format : {"e4m3fn", "e5m2", "bf16"}) {
    const float largest = update_reference::StorageOf(format).MaxFinite();
    Case c = NoteCase(format, {{largest, 1}, {largest, 1}}, 1);
    c.rule.iterations = 1;  // alpha = 1/2: overflow
    ExpectAsDefined(c);
    const Result result = Apply(c);
    EXPECT_EQ(result.outcome.status, UpdateStatus::kNonfinite) << format;
    EXPECT_FALSE(std::isfinite(result.weights[0])) << format;
    EXPECT_EQ(result.weights[1], 1.5f) << format;
  }
}

TEST(NoteAsPrinted, SaturatesWhereTheFormatHasNothingElse) {
  Case c = NoteCase("e2m1fn", {{6, 1}, {6, 0}}, 1);
  ExpectAsDefined(c);
  const Result result = Apply(c);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kSaturated);
  EXPECT_EQ(result.outcome.saturated, 1u);
  EXPECT_EQ(result.weights, (std::vector<float>{6, 1}));
}

TEST(NoteAsPrinted, NonfiniteInputsMoveNothing) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const bool in_update : {false, true}) {
      Arrays arrays = {{1, 1}, {1, 1}};
      (in_update ? arrays.update : arrays.weights)[0] = bad;
      const Result result = Apply(NoteCase("bf16", arrays, 0.5f));
      EXPECT_EQ(result.outcome.status, UpdateStatus::kNonfinite);
      EXPECT_EQ(result.outcome.moved, 0u);
      ExpectSameBits(result.weights, arrays.weights);
    }
  }
}

TEST(NoteAsPrinted, RateZeroIsTheIdentity) {
  // As printed, the last candidate 2^-32 would move a zero.
  const Result result = Apply(NoteCase("bf16", {{0, -0.0f}, {1, 1}}, 0));
  ExpectSameBits(result.weights, {0, -0.0f});
  EXPECT_EQ(result.outcome.status, UpdateStatus::kZeroUpdate);
}

TEST(NoteAsPrinted, EachGroupHasItsOwnSearch) {
  // Rows whose updates differ by powers of 16.
  Arrays arrays = DrawNormal("bf16", 5 * 37, 68);
  for (size_t i = 0; i < arrays.update.size(); ++i) {
    arrays.update[i] = std::ldexp(arrays.update[i], -4 * static_cast<int>(i / 37));
  }
  for (const char* rule : {"note-as-printed@row", "note-as-printed@block:16"}) {
    Case c = MakeCase("bf16", rule, arrays, 1e-3f);
    c.rows = 5;
    c.cols = 37;
    ExpectAsDefined(c);
    const Result result = Apply(c);
    EXPECT_EQ(result.groups.size(), c.rule.scope.Count(5, 37));
    EXPECT_TRUE(std::isnan(result.outcome.alpha));
    EXPECT_TRUE(std::isnan(result.outcome.matched));
    EXPECT_TRUE(std::isnan(result.outcome.matched_target));
  }
}

}  // namespace
}  // namespace numsim
