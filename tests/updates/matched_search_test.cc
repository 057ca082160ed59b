// The pass that finds the weights that change between two factors, and what it leaves of the rest.
#include "numsim/updates/internal/matched_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/cast/shared/round_step.h"
#include "tests/updates/matched_check.h"

namespace numsim {
namespace {

std::vector<float> ValuesAt(const MatchedCase& c, AlphaKey key) {
  std::vector<float> values(c.weights.size());
  RoundStep(c.plan, c.weights, c.update, AlphaOf(key), values);
  return values;
}

// Checks every field of a crossing against the values at both ends.
void ExpectCrossing(const MatchedCase& c, AlphaKey low, AlphaKey high) {
  const MatchedProblem problem = c.Problem();
  const MatchedTerms terms(problem);
  std::vector<float> written(c.weights.size(), 77.0f);
  const Crossing crossing = FindCrossing(problem, terms, low, high, written);
  const std::vector<float> at_low = ValuesAt(c, low), at_high = ValuesAt(c, high);
  double sum_low = 0, sum_high = 0;
  size_t member = 0;
  const TieSet& members = crossing.members;
  for (size_t i = 0; i < c.weights.size(); ++i) {
    const float w = c.weights[i], u = c.update[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(written[i]), std::bit_cast<uint32_t>(at_low[i])) << i;
    sum_low += terms(w, u, at_low[i]);
    sum_high += terms(w, u, at_high[i]);
    if (std::bit_cast<uint32_t>(at_low[i]) == std::bit_cast<uint32_t>(at_high[i])) continue;
    ASSERT_LT(member, members.size()) << i;
    ASSERT_EQ(members.index[member], i);
    ASSERT_EQ(members.weights[member], w) << i;
    ASSERT_EQ(members.update[member], u) << i;
    ASSERT_EQ(members.at_low[member], at_low[i]) << i;
    ASSERT_EQ(members.at_high[member], at_high[i]) << i;
    ++member;
  }
  EXPECT_EQ(members.size(), member);
  EXPECT_EQ(crossing.sum_low, sum_low);
  EXPECT_EQ(crossing.sum_high, sum_high);
}

TEST(FindCrossing, IsThatOfTheValuesAtItsEnds) {
  for (const size_t n : {1, 17, 4096, 4099, 65536, 65537, 139'271}) {
    for (const UpdateShape shape : {UpdateShape::kNormal, UpdateShape::kSigns}) {
      SCOPED_TRACE(testing::Message() << n << " weights, shape " << static_cast<int>(shape));
      MatchedCase c = DrawCase("e4m3fn", WeightKind::kMixed, shape, n, n);
      c.learning_rate = 0.25f;
      // Sums are exact below T.
      const AlphaKey high = KeyOf(c.learning_rate / 4), low = KeyOf(c.learning_rate / 8);
      ExpectCrossing(c, low, high);
      ExpectCrossing(c, high - 1, high);
      if (HasFailure()) return;
    }
  }
}

TEST(FindCrossing, AllOrNoneMayBeMembers) {
  MatchedCase c = DrawCase("e4m3fn", WeightKind::kMixed, UpdateShape::kSigns, 70'001, 3);
  std::fill(c.weights.begin(), c.weights.end(), 1.125f);
  std::fill(c.update.begin(), c.update.end(), 1.0f);
  c.learning_rate = 1;
  const AlphaKey tie = KeyOf(0.0625f);  // 1.1875 rounds to 1.25, the even code
  ExpectCrossing(c, tie - 1, tie);
  ExpectCrossing(c, tie - 2, tie - 1);
  ExpectCrossing(c, tie, tie + 1);
}

// Half of the weights tie at alpha = 1 / 16, and half of these move. The others are -0 just below and
// +0 at alpha: they keep the value below, whatever their random words.
TEST(MatchedStep, ZerosOfBothSignsBesideATieAreNoTie) {
  for (const size_t n : {20, 3000, 40'000}) {
    SCOPED_TRACE(n);
    MatchedCase c = DrawCase("e4m3fn", WeightKind::kMixed, UpdateShape::kSigns, n, n);
    for (size_t i = 0; i < n; ++i) {
      c.weights[i] = i % 2 == 0 ? 1.125f : -0.0625f;
      c.update[i] = 1;
    }
    c.learning_rate = 0.0625f;
    c.quantity = MatchedQuantity::kProjection;
    for (const MatchSolver solver : kSolvers) {
      const TakenStep taken = Take(c, solver);
      ASSERT_EQ(taken.step.alpha, 0.0625f);
      size_t moved = 0;
      for (size_t i = 0; i < n; i += 2) moved += taken.weights[i] == 1.25f ? 1 : 0;
      EXPECT_EQ(moved, n / 4);
      for (size_t i = 1; i < n; i += 2) {
        ASSERT_EQ(taken.weights[i], 0) << i;
        ASSERT_TRUE(std::signbit(taken.weights[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace numsim
