// Matched rules through ApplyUpdate: scopes, decay, outcomes and statuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/updates/step_sums.h"
#include "numsim/updates/update_rule.h"
#include "tests/support/every_backend.h"
#include "tests/updates/matched_check.h"
#include "tests/updates/matched_large.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

struct Applied {
  UpdateOutcome outcome;
  std::vector<UpdateOutcome> groups;
  std::vector<float> weights;
};

Applied Apply(const std::string& rule, const MatchedCase& c, size_t rows, float weight_decay = 0) {
  const MatrixShape shape{rows, c.weights.size() / rows};
  const WeightUpdate step = {.format = c.plan.format,
                             .weights = HostMatrix(c.weights, shape),
                             .update = HostMatrix(c.update, shape),
                             .learning_rate = c.learning_rate,
                             .weight_decay = weight_decay};
  Applied applied;
  applied.weights.assign(c.weights.size(), 77.0f);
  UpdateState state;
  applied.outcome = ApplyUpdate(ParseUpdateRule(rule),
                                step,
                                c.random,
                                state,
                                HostMatrix(applied.weights, shape),
                                &applied.groups);
  EXPECT_EQ(update_cases::FromUpdateState(state), update_reference::State());
  return applied;
}

bool SameWeights(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
         });
}

// The part of a case from `begin` on, which draws the words of its place.
MatchedProblem PartOf(const MatchedCase& c, size_t begin, size_t count) {
  MatchedProblem part = c.Problem();
  part.weights = part.weights.subspan(begin, count);
  part.update = part.update.subspan(begin, count);
  part.update_square = SquaredSum(part.update);
  part.first_index = begin;
  return part;
}

// rows x cols weights in groups of `block` within each row.
void CheckScope(const std::string& rule, MatchedCase c, size_t rows, size_t block) {
  SCOPED_TRACE(rule);
  const size_t cols = c.weights.size() / rows;
  c.quantity = rule[0] == 'n' ? MatchedQuantity::kNorm : MatchedQuantity::kProjection;
  c.small_step =
      rule.find(":none") == std::string::npos ? SmallStep::kOneAtRandom : SmallStep::kNone;
  const Applied applied = Apply(rule, c, rows);
  size_t group = 0;
  for (size_t begin = 0; begin < c.weights.size(); ++group) {
    const size_t count = std::min(block, cols - begin % cols);
    const MatchedProblem part = PartOf(c, begin, count);
    std::vector<float> want(count);
    const MatchedStep step = TakeMatchedStep(part, MatchSolver::kBisection, want);
    EXPECT_TRUE(
        SameWeights({applied.weights.data() + begin, applied.weights.data() + begin + count}, want))
        << "group " << group;
    ASSERT_LT(group, applied.groups.size());
    const UpdateOutcome& outcome = applied.groups[group];
    EXPECT_EQ(outcome.alpha, step.alpha);
    EXPECT_EQ(outcome.matched, step.matched);
    EXPECT_EQ(outcome.matched_target, step.target);
    EXPECT_GE(outcome.status, step.status);
    begin += count;
  }
  EXPECT_EQ(applied.groups.size(), group);
}

MatchedCase SomeCase(const std::string& format, size_t n, uint64_t seed) {
  MatchedCase c = DrawLarge(format, LargeKind::kNormal, n, seed);
  c.first_index = 0;
  return c;
}

TEST(MatchedApply, GroupsAreTakenOneByOneWithTheWordsOfTheirPlaces) {
  for (const char* format : {"e4m3fn", "bf16", "int8"}) {
    for (float lr : {1e-4f, 0.02f}) {
      MatchedCase c = SomeCase(format, 12 * 70, 5);
      c.learning_rate = lr;
      for (const std::string kind : {"norm-matched", "projection-matched", "norm-matched:none"}) {
        CheckScope(kind, c, 1, c.weights.size());
        CheckScope(kind + "@row", c, 12, 70);
        CheckScope(kind + "@block:32", c, 12, 32);
        CheckScope(kind + "@block:1", c, 12, 1);
        CheckScope(kind + "@block:1000", c, 12, 70);
      }
    }
  }
}

TEST(MatchedApply, RowsOfOneAreStillDrawnApart) {
  // Sixty weights alone in their rows, each below its least step: some move, some do not.
  MatchedCase c = SomeCase("e4m3fn", 60, 6);
  std::fill(c.weights.begin(), c.weights.end(), 1.0f);
  std::fill(c.update.begin(), c.update.end(), 1.0f);
  c.learning_rate = 0x1p-4f;  // half of a gap
  const Applied applied = Apply("norm-matched@row", c, 60);
  EXPECT_EQ(applied.outcome.status, UpdateStatus::kBelowMinStep);
  EXPECT_GT(applied.outcome.moved, 12u);
  EXPECT_LT(applied.outcome.moved, 48u);
}

TEST(MatchedApply, OutcomeMeasuresTheStep) {
  for (const char* rule : {"norm-matched", "projection-matched@block:100"}) {
    const MatchedCase c = SomeCase("bf16", 4000, 7);
    const Applied applied = Apply(rule, c, 8);
    uint64_t moved = 0;
    double norm = 0, projection = 0, square = 0;
    for (size_t i = 0; i < c.weights.size(); ++i) {
      const double d = static_cast<double>(applied.weights[i]) - static_cast<double>(c.weights[i]);
      const auto u = static_cast<double>(c.update[i]);
      moved += d != 0;
      norm += d * d;
      projection += d * u;
      square += u * u;
    }
    const auto lr = static_cast<double>(c.learning_rate);
    const UpdateOutcome& outcome = applied.outcome;
    EXPECT_EQ(outcome.moved, moved);
    EXPECT_EQ(outcome.saturated, 0u);
    EXPECT_NEAR(outcome.achieved_norm, std::sqrt(norm), 1e-9);
    EXPECT_NEAR(outcome.achieved_projection, projection, 1e-9);
    EXPECT_NEAR(outcome.target_norm, lr * std::sqrt(square), 1e-9);
    EXPECT_NEAR(outcome.target_projection, lr * square, 1e-9);
    // A group's sum is off by half a jump at most, so forty groups by little.
    const bool is_norm = rule[0] == 'n';
    EXPECT_NEAR(is_norm ? outcome.achieved_norm / outcome.target_norm
                        : outcome.achieved_projection / outcome.target_projection,
                1,
                is_norm ? 1e-3 : 0.05);
  }
}

TEST(MatchedApply, DecayIsPartOfTheUpdateAndOfTheTarget) {
  for (const char* rule : {"norm-matched", "projection-matched@row"}) {
    const MatchedCase c = SomeCase("fp16", 3000, 8);
    MatchedCase decayed = c;
    for (size_t i = 0; i < c.weights.size(); ++i) {
      decayed.update[i] =
          static_cast<float>(static_cast<double>(c.update[i]) -
                             static_cast<double>(0.37f) * static_cast<double>(c.weights[i]));
    }
    const Applied a = Apply(rule, c, 10, 0.37f), b = Apply(rule, decayed, 10);
    EXPECT_TRUE(SameWeights(a.weights, b.weights));
    EXPECT_EQ(a.outcome.target_norm, b.outcome.target_norm);
    EXPECT_NE(a.outcome.target_norm, Apply(rule, c, 10).outcome.target_norm);
  }
}

TEST(MatchedApply, ThreadsAndBackendsDoNotChangeBits) {
  for (const char* rule : {"norm-matched@row", "projection-matched@block:77", "norm-matched"}) {
    const MatchedCase c = SomeCase("e4m3fn", 30 * 500, 9);
    const Applied want = Apply(rule, c, 30);
    WithEachBackend([&] {
      for (int threads : {1, 2, 3}) {
        SetThreadCount(threads);
        const Applied got = Apply(rule, c, 30);
        EXPECT_TRUE(SameWeights(got.weights, want.weights)) << rule << threads;
        EXPECT_EQ(got.outcome.achieved_norm, want.outcome.achieved_norm);
        EXPECT_EQ(got.outcome.achieved_projection, want.outcome.achieved_projection);
        EXPECT_EQ(got.outcome.target_norm, want.outcome.target_norm);
      }
    });
  }
}

TEST(MatchedApply, BothSolversGiveTheSameOutcome) {
  for (const char* text : {"norm-matched", "projection-matched@block:50"}) {
    const MatchedCase c = SomeCase("e5m2", 3000, 10);
    const WeightUpdate step = {.format = c.plan.format,
                               .weights = HostMatrix(c.weights, {3, 1000}),
                               .update = HostMatrix(c.update, {3, 1000}),
                               .learning_rate = c.learning_rate};
    UpdateRule rule = ParseUpdateRule(text);
    UpdateState state;
    std::vector<float> selected(3000), bisected(3000);
    ApplyUpdate(rule, step, c.random, state, HostMatrix(selected, {3, 1000}));
    rule.solver = MatchSolver::kBisection;
    ApplyUpdate(rule, step, c.random, state, HostMatrix(bisected, {3, 1000}));
    EXPECT_TRUE(SameWeights(selected, bisected)) << text;
  }
}

TEST(MatchedApply, StatusNamesWhatWentWrong) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Wrong {
    std::vector<float> weights, update;
    float learning_rate;
    UpdateStatus status;
    bool moves;
  };
  const std::vector<Wrong> cases = {
      {{1, 1}, {1, 1}, 0.125f, UpdateStatus::kOk, true},
      {{1, 1}, {0, 0}, 0.125f, UpdateStatus::kZeroUpdate, false},
      {{1, -0.0f}, {1, 1}, 0, UpdateStatus::kZeroUpdate, false},
      {{448, 1}, {1, 1}, 0.125f, UpdateStatus::kSaturated, true},
      {{448, 1}, {1, 1}, 1e4f, UpdateStatus::kSaturated, false},
      {{448, -448}, {1, -1}, 0.125f, UpdateStatus::kSaturated, false},
      {{1, 1}, {1, kNaN}, 0.125f, UpdateStatus::kNonfinite, false},
      {{1, 1}, {kInfinity, 1}, 0.125f, UpdateStatus::kNonfinite, false},
      {{kNaN, 1}, {1, 1}, 0.125f, UpdateStatus::kNonfinite, false},
      {{1, 1}, {1e-3f, 1e-3f}, 1e-3f, UpdateStatus::kBelowMinStep, false},
  };
  for (const char* rule :
       {"norm-matched:none", "projection-matched:none", "norm-matched:none@row"}) {
    for (const Wrong& wrong : cases) {
      MatchedCase c;
      c.plan = MatchedPlan("e4m3fn");
      c.weights = wrong.weights;
      c.update = wrong.update;
      c.learning_rate = wrong.learning_rate;
      const Applied applied = Apply(rule, c, 1);
      EXPECT_EQ(applied.outcome.status, wrong.status) << rule << " " << &wrong - cases.data();
      EXPECT_EQ(applied.outcome.moved > 0, wrong.moves) << rule << " " << &wrong - cases.data();
      EXPECT_EQ(SameWeights(applied.weights, wrong.weights), !wrong.moves);
    }
  }
}

TEST(MatchedApply, RowOfZerosStaysWhileOthersMove) {
  MatchedCase c = SomeCase("bf16", 300, 11);
  std::fill(c.update.begin() + 100, c.update.begin() + 200, 0.0f);
  const Applied applied = Apply("norm-matched@row", c, 3);
  EXPECT_EQ(applied.outcome.status, UpdateStatus::kOk);
  ASSERT_EQ(applied.groups.size(), 3u);
  EXPECT_EQ(applied.groups[0].status, UpdateStatus::kOk);
  EXPECT_EQ(applied.groups[1].status, UpdateStatus::kZeroUpdate);
  EXPECT_EQ(applied.groups[2].status, UpdateStatus::kOk);
  const std::vector<float> middle(c.weights.begin() + 100, c.weights.begin() + 200);
  EXPECT_TRUE(SameWeights({applied.weights.begin() + 100, applied.weights.begin() + 200}, middle));
}

}  // namespace
}  // namespace numsim
