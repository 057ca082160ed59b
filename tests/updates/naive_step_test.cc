// The direct step against ApplyUpdate with new weights apart, which does not take it: the same bits
// and outcome, or a refusal that changes nothing.
#include "numsim/updates/internal/naive_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/random/distributions.h"
#include "tests/support/same_bits.h"

namespace numsim {
namespace {

using Floats = std::vector<float>;

struct Applied {
  Floats weights;
  UpdateOutcome outcome;
};

Applied Apply(const Floats& update, float learning_rate, float decay, const Floats& weights) {
  Applied applied{weights, {}};
  UpdateState state;
  WeightUpdate step;
  step.format = kFp32;
  const MatrixShape shape{1, weights.size()};
  step.weights = HostMatrix(weights, shape);
  step.update = HostMatrix(update, shape);
  step.learning_rate = learning_rate;
  step.weight_decay = decay;
  applied.outcome = ApplyUpdate({}, step, {1, 2}, state, HostMatrix(applied.weights, shape));
  return applied;
}

void ExpectSame(const UpdateOutcome& a, const UpdateOutcome& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.moved, b.moved);
  EXPECT_EQ(a.saturated, b.saturated);
  EXPECT_EQ(a.achieved_norm, b.achieved_norm);
  EXPECT_EQ(a.target_norm, b.target_norm);
  EXPECT_EQ(a.achieved_projection, b.achieved_projection);
  EXPECT_EQ(a.target_projection, b.target_projection);
  EXPECT_EQ(a.alpha, b.alpha);
  EXPECT_EQ(a.matched, b.matched);
  EXPECT_EQ(a.passes, b.passes);
}

TEST(NaiveStep, EqualsApplyUpdate) {
  for (const size_t n : {1u, 7u, 4096u, 4097u, 40000u}) {
    Floats weights(n), update(n);
    FillNormal({1, 1}, 0, weights);
    FillNormal({1, 2}, 0, update);
    weights[0] = -0.0f;
    if (n > 1) update[n / 2] = 0;
    for (const float decay : {0.0f, 0.1f, 3.0f, -0.5f}) {
      for (const float learning_rate : {1e-12f, 1e-3f, 0.7f}) {
        Floats mine = weights;
        const auto outcome = TakeNaiveStep(update, learning_rate, decay, mine);
        ASSERT_TRUE(outcome.has_value());
        const Applied theirs = Apply(update, learning_rate, decay, weights);
        EXPECT_TRUE(SameBits(mine, theirs.weights)) << n << " decay " << decay;
        ExpectSame(*outcome, theirs.outcome);
      }
    }
  }
}

// ApplyUpdate itself takes that way where it is asked to step in place.
TEST(NaiveStep, ApplyUpdateInPlaceEqualsApplyUpdateApart) {
  constexpr size_t n = 5000;
  Floats weights(n), update(n);
  FillNormal({1, 3}, 0, weights);
  FillNormal({1, 4}, 0, update);
  for (const float first : {1.0f, std::numeric_limits<float>::max()}) {  // the last saturates
    weights[0] = update[0] = first;
    const Applied apart = Apply(update, 1, 0.1f, weights);
    Floats mine = weights;
    UpdateState state;
    WeightUpdate step;
    step.format = kFp32;
    const MatrixSpan<float> matrix = HostMatrix(mine, {1, n});
    step.weights = matrix;
    step.update = HostMatrix(update, {1, n});
    step.learning_rate = 1;
    step.weight_decay = 0.1f;
    std::vector<UpdateOutcome> groups;
    const UpdateOutcome outcome = ApplyUpdate({}, step, {1, 2}, state, matrix, &groups);
    EXPECT_TRUE(SameBits(mine, apart.weights));
    ExpectSame(outcome, apart.outcome);
    ASSERT_EQ(groups.size(), 1u);
    ExpectSame(groups[0], outcome);
  }
}

TEST(NaiveStep, StepsThatAreLostSaySo) {
  Floats weights = {1, 2};
  const auto outcome = TakeNaiveStep(Floats{1, 1}, 1e-20f, 0, weights);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, UpdateStatus::kBelowMinStep);
  EXPECT_EQ(weights, (Floats{1, 2}));
}

TEST(NaiveStep, LeavesTheRestToApplyUpdate) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const float most = std::numeric_limits<float>::max();
  struct Case {
    Floats update, weights;
    float learning_rate, decay;
  };
  for (const Case& c : {Case{{1, inf}, {1, 1}, 0.1f, 0},
                        Case{{1, nan}, {1, 1}, 0.1f, 0},
                        Case{{1, -nan}, {1, 1}, 0.1f, 0.1f},
                        Case{{1, 1}, {1, -inf}, 0.1f, 0},
                        Case{{1, 1}, {nan, 1}, 0.1f, 0.1f},
                        Case{{1, 1}, {most, 1}, 1, 0},
                        Case{{most, 1}, {1, 1}, 2, 0},
                        Case{{1, 1}, {1e30f, 1}, 0.1f, -1e20f},
                        Case{{1, 1}, {-0.0f, 1}, 0, 0},
                        Case{{0, -0.0f}, {-0.0f, 1}, 1, 0},
                        Case{{0.5f, 0}, {1, -0.0f}, 1, 0.5f},
                        Case{{}, {}, 1, 0}}) {
    Floats weights = c.weights;
    EXPECT_FALSE(TakeNaiveStep(c.update, c.learning_rate, c.decay, weights).has_value());
    EXPECT_TRUE(SameBits(weights, c.weights));
  }
}

}  // namespace
}  // namespace numsim
