// The matched step against its definition in brute force, and cases worked out by hand.
#include "numsim/updates/internal/matched_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/support/sampling.h"
#include "tests/updates/matched_check.h"

namespace numsim {
namespace {

MatchedCase Case(const std::string& format,
                 std::vector<float> weights,
                 std::vector<float> update,
                 float learning_rate) {
  MatchedCase c;
  c.format = format;
  c.plan = MatchedPlan(format);
  c.weights = std::move(weights);
  c.update = std::move(update);
  c.learning_rate = learning_rate;
  return c;
}

MatchedResult CheckByHand(const MatchedCase& c) {
  return CheckByOracle(c, oracle::Grid(oracle::FindFormat(c.format)));
}

class MatchedStepOfFormat : public testing::TestWithParam<oracle::Format> {};

TEST_P(MatchedStepOfFormat, EqualsItsDefinition) {
  const oracle::Grid grid(GetParam());
  oracle::TestRandom random(GetParam().name.size());
  uint64_t seed = 100;
  for (int w = 0; w < kWeightKinds; ++w) {
    for (int u = 0; u < kUpdateShapes; ++u) {
      const size_t n = 1 + random.Below(1 + random.Below(24));
      CheckByOracle(
          DrawCase(
              GetParam().name, static_cast<WeightKind>(w), static_cast<UpdateShape>(u), n, ++seed),
          grid);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats,
                         MatchedStepOfFormat,
                         testing::ValuesIn(SampledCases(SymmetricFormats())),
                         oracle::ParamName);

// 0.75 + 0.03 lies below the tie 0.78125, at which 0.75, the even code, still stays.
TEST(MatchedStep, ExampleOfTheNoteIsBelowTheLeastStep) {
  size_t moved = 0;
  for (uint64_t stream = 0; stream < 100; ++stream) {
    MatchedCase c = Case("e4m3fn", {0.75f}, {0.03f}, 1.0f);
    c.random = {.seed = 4, .stream = stream};
    const MatchedResult result = CheckByHand(c);
    EXPECT_EQ(result.step.status, UpdateStatus::kBelowMinStep);
    EXPECT_GT(static_cast<double>(result.step.alpha) * static_cast<double>(0.03f), 0.03125);
    EXPECT_LE(
        static_cast<double>(std::nextafter(result.step.alpha, 0.0f)) * static_cast<double>(0.03f),
        0.03125);
    EXPECT_EQ(result.greatest_jump, 0.0625);
    moved += result.changed;
  }
  EXPECT_GT(moved, 30u);  // p = 0.03 / 0.0625 = 0.48
  EXPECT_LT(moved, 70u);
}

// Sixteen of them: T = 16 * 0.03^2 = 0.0144, and 4 * 0.0625^2 = 0.0156 is nearer than 3.
TEST(MatchedStep, ExampleOfTheNoteTogether) {
  MatchedCase c = Case("e4m3fn", std::vector<float>(16, 0.75f), std::vector<float>(16, 0.03f), 1);
  const MatchedResult result = CheckByHand(c);
  EXPECT_EQ(result.step.status, UpdateStatus::kOk);
  EXPECT_EQ(result.group, 16u);
  EXPECT_EQ(result.changed, 4u);
  EXPECT_EQ(result.step.matched, 0.125);
  EXPECT_NEAR(result.step.target, 0.12, 1e-8);
  // The projection asks for 16 * 0.03^2 = 0.0144 of 0.0625 * 0.03 = 0.001875 each: 7.68.
  c.quantity = MatchedQuantity::kProjection;
  EXPECT_EQ(CheckByHand(c).changed, 8u);
}

TEST(MatchedStep, TieGoesToEvenCodeSoThatOddOnesMoveOneAlphaEarlier) {
  // 0.8125 + 1/32 is a tie between odd 0.8125 and even 0.875.
  EXPECT_EQ(CheckByHand(Case("e4m3fn", {0.8125f}, {1.0f}, 0.0625f)).step.alpha, 0.03125f);
  EXPECT_EQ(CheckByHand(Case("e4m3fn", {0.8125f}, {1.0f}, 0.0625f)).step.status, UpdateStatus::kOk);
  EXPECT_EQ(CheckByHand(Case("e4m3fn", {0.75f}, {1.0f}, 0.0625f)).step.alpha,
            std::nextafter(0.03125f, 1.0f));
}

TEST(MatchedStep, IntegersByHand) {
  // 1 moves to 2 at alpha = 1/2, the tie; 2 moves to 1 just above; T = 2.
  const MatchedResult result = CheckByHand(Case("int8", {1, 2, 3}, {1, -1, 0}, 1));
  EXPECT_EQ(result.step.status, UpdateStatus::kOk);
  EXPECT_EQ(result.step.alpha, std::nextafter(0.5f, 1.0f));
  EXPECT_EQ(result.group, 1u);
  EXPECT_EQ(result.weights, (std::vector<float>{2, 1, 3}));
  EXPECT_EQ(result.step.matched, std::sqrt(2.0));
}

TEST(MatchedStep, WeightThatCrossesSeveralGapsAtOnce) {
  // sqrt T = 0.4 sqrt(64^2 + 1) = 25.6: the first weight is at 26 long before the other moves.
  const MatchedResult result = CheckByHand(Case("int8", {0, 0}, {64, 1}, 0.4f));
  EXPECT_EQ(result.weights, (std::vector<float>{26, 0}));
  // One float32 apart in alpha, many gaps apart in weight.
  CheckByHand(Case("bf16", {1, 0x1p-60f}, {0x1p60f, 1}, 0x1p-40f));
  CheckByHand(Case("fp32", {0x1p-60f, 1}, {0x1.8p60f, 1e30f}, 1e-6f));
}

TEST(MatchedStep, OutOfReachMovesNothing) {
  for (const MatchedCase& c : {Case("e4m3fn", {448}, {1}, 1),
                               Case("e4m3fn", {448, 1, 0}, {1, 1, -1}, 1000),
                               Case("ue5m3:zero=unsigned", {0}, {-1}, 0.1f),
                               Case("e8m0fnu", {0x1p-127f, 0x1p127f}, {-1, 1}, 0.1f),
                               Case("int8", {-127, 5}, {-1, 200}, 1)}) {
    for (MatchedQuantity quantity : {MatchedQuantity::kNorm, MatchedQuantity::kProjection}) {
      MatchedCase with = c;
      with.quantity = quantity;
      const MatchedResult result = CheckByHand(with);
      EXPECT_EQ(result.step.status, UpdateStatus::kSaturated) << Describe(with);
      EXPECT_EQ(result.step.alpha, 0);
      EXPECT_EQ(result.step.matched, 0);
      EXPECT_EQ(result.weights, c.weights);
      for (MatchSolver solver : kSolvers) {
        EXPECT_EQ(Take(with, solver).weights, c.weights);
      }
    }
  }
}

TEST(MatchedStep, SaturatedWeightsStayWhileOthersReachTheTarget) {
  const MatchedResult result = CheckByHand(Case("e4m3fn", {448, 1, -448}, {1, 1, -1}, 1));
  EXPECT_EQ(result.step.status, UpdateStatus::kOk);
  EXPECT_EQ(result.weights, (std::vector<float>{448, 2.75f, -448}));
}

TEST(MatchedStep, TermsThatRoundToNothingAreNoStep) {
  // The zero moves at any alpha, by less than a sum of this size can hold; the k-th is drawn.
  for (SmallStep small : {SmallStep::kOneAtRandom, SmallStep::kNone}) {
    for (uint64_t stream = 0; stream < 20; ++stream) {
      MatchedCase c = Case("bf16", {0, 1, 1, 0}, {1e-20f, 1, -1, -1e-20f}, 1e-5f);
      c.small_step = small;
      c.random.stream = stream;
      EXPECT_EQ(CheckByHand(c).step.status, UpdateStatus::kBelowMinStep);
      // And one of that size in the group itself: all three thresholds are alpha = 1.
      c = Case("bf16", {1, 0x1p-60f, 1}, {0x1p-8f, 0x1p-68f, 0x1p-8f}, 1e-5f);
      c.small_step = small;
      c.random.stream = stream;
      EXPECT_EQ(CheckByHand(c).step.status, UpdateStatus::kBelowMinStep);
    }
  }
}

// 67 bits of d u, of which fl64 keeps 53 and the unit one less.
TEST(MatchedStep, TermsAboveTheTargetAreRoundedToo) {
  MatchedCase c = Case("e7m2:bias=90", {-0x1p-44f}, {0x1.666666p-1f}, 0.5f);
  c.quantity = MatchedQuantity::kProjection;
  EXPECT_EQ(CheckByHand(c).step.matched, 0x1.0ccccc80002ccp-2);
}

TEST(MatchedStep, EqualDistancesTakeTheShorterStep) {
  // Projection, each step 2. T = 0.5 * 12 = 6: three change.
  MatchedCase c = Case("int8", {0, 0, 0}, {2, 2, 2}, 0.5f);
  c.quantity = MatchedQuantity::kProjection;
  EXPECT_EQ(CheckByHand(c).changed, 3u);
  // T = 0.25 * 20 = 5: 4 and 6 are equally near, so two change.
  c = Case("int8", {0, 0, 0, 0, 0}, {2, 2, 2, 2, 2}, 0.25f);
  c.quantity = MatchedQuantity::kProjection;
  EXPECT_EQ(CheckByHand(c).changed, 2u);
  // Norm: lr ||u|| = k + 1/2 lies halfway between k and k + 1, whatever their roots' last bits.
  for (int k = 1; k < 100; ++k) {
    const MatchedResult result = CheckByHand(Case("int8", {0}, {1}, static_cast<float>(k) + 0.5f));
    EXPECT_EQ(result.step.matched, k);
    EXPECT_EQ(result.changed, 0u);
  }
}

}  // namespace
}  // namespace numsim
