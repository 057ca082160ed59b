// Tests what holds for every rule: statuses, the identity, symmetry, threads and backends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/updates/update_rule.h"
#include "tests/reference/updates/update_reference.h"
#include "tests/support/every_backend.h"
#include "tests/support/special_values.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Apply;
using update_cases::Case;
using update_cases::DrawNormal;
using update_cases::ExpectIdenticalOutcome;
using update_cases::ExpectSameBits;
using update_cases::ExpectSameState;
using update_cases::MakeCase;
using update_cases::WithHistory;
using update_reference::Result;

// The rules of this file: all that do not match a quantity. Of bf16, which all of them serve.
const char* const kRules[] = {"naive",
                              "stochastic",
                              "stochastic:8",
                              "master-fp32",
                              "master-fp16-scaled",
                              "master-fp16-scaled@row",
                              "split-master",
                              "kahan",
                              "kahan:fp32",
                              "note-as-printed",
                              "note-as-printed@block:50"};

// Weights that are easily got wrong where nothing should happen, with remainders that fit them.
void AddCorners(Case& c) {
  const float corners[] = {-0.0f, 0.0f, 0x1p-133f, -0x1.fep127f};
  std::copy(std::begin(corners), std::end(corners), c.arrays.weights.begin());
  if (c.rule.kind == UpdateKind::kSplitMaster) std::fill_n(c.state.words.begin(), 4, 0);
}

void ExpectNothingMoved(const Case& c, UpdateStatus status) {
  SCOPED_TRACE(ToString(c.rule));
  const Result result = Apply(c);
  EXPECT_EQ(ToString(result.outcome.status), ToString(status));
  EXPECT_EQ(result.outcome.moved, 0u);
  ExpectSameBits(result.weights, c.arrays.weights);
  ExpectSameState(result.state, c.state);
  if (status != UpdateStatus::kNonfinite) return;
  // A step that was refused has a status alone.
  UpdateOutcome refused;
  refused.status = status;
  ExpectIdenticalOutcome(result.outcome, refused);
}

TEST(EveryUpdateRule, RateZeroIsTheIdentity) {
  for (const char* rule : kRules) {
    Case c = WithHistory(rule, 200);
    AddCorners(c);
    c.learning_rate = 0;
    ExpectNothingMoved(c, UpdateStatus::kZeroUpdate);
    c.weight_decay = 0.5f;
    ExpectNothingMoved(c, UpdateStatus::kZeroUpdate);
  }
}

TEST(EveryUpdateRule, AnUpdateOfZerosIsTheIdentity) {
  for (const char* rule : kRules) {
    Case c = WithHistory(rule, 200);
    AddCorners(c);
    for (size_t i = 0; i < 200; ++i) c.arrays.update[i] = i % 2 == 0 ? 0.0f : -0.0f;
    ExpectNothingMoved(c, UpdateStatus::kZeroUpdate);
  }
}

TEST(EveryUpdateRule, DecayThatCancelsTheUpdateIsTheIdentity) {
  for (const char* rule : kRules) {
    // No history: the weight is all that the rule knows.
    Case c = MakeCase("bf16", rule, DrawNormal("bf16", 200, 72), 0.5f);
    c.weight_decay = 0.25f;
    // A master of fp16 cannot hold every bf16 number.
    for (float& w : c.arrays.weights) w = std::round(8 * w) / 8;
    c.state = MakeCase("bf16", rule, c.arrays, 0).state;
    for (size_t i = 0; i < 200; ++i) c.arrays.update[i] = 0.25f * c.arrays.weights[i];
    ExpectNothingMoved(c, UpdateStatus::kZeroUpdate);
  }
}

TEST(EveryUpdateRule, DecayAloneIsAnUpdate) {
  for (const char* rule : kRules) {
    Case c = MakeCase("bf16", rule, DrawNormal("bf16", 200, 73), 0.5f);
    c.weight_decay = 0.25f;
    c.arrays.update.assign(200, 0.0f);
    const Result result = Apply(c);
    EXPECT_NE(result.outcome.status, UpdateStatus::kZeroUpdate) << rule;
    EXPECT_GT(result.outcome.moved, 150u) << rule;
    double square = 0;
    for (const float w : c.arrays.weights) square += 0.0625 * w * w;
    // A master of fp16 knows a weight that is a little different.
    EXPECT_NEAR(result.outcome.target_norm, 0.5 * std::sqrt(square), 1e-4) << rule;
  }
}

TEST(EveryUpdateRule, ANumberThatIsNotFiniteMovesNothing) {
  for (const char* rule : kRules) {
    for (const float bad : {kNaN, kInfinity, -kInfinity}) {
      // One group, so that all of it stays.
      Case c = WithHistory(rule, 50);
      Case update = c;
      update.arrays.update[31] = bad;
      ExpectNothingMoved(update, UpdateStatus::kNonfinite);
      Case weight = c;
      weight.arrays.weights[31] = bad;
      ExpectNothingMoved(weight, UpdateStatus::kNonfinite);
      if (c.state.values.empty()) continue;
      c.state.values[31] = bad;
      ExpectNothingMoved(c, UpdateStatus::kNonfinite);
    }
  }
}

TEST(EveryUpdateRule, InfiniteMasterOfFp16MovesNothing) {
  for (const uint16_t code : {0x7C00, 0xFC00, 0x7E00}) {
    Case c = WithHistory("master-fp16-scaled", 50);
    c.state.words[17] = code;
    ExpectNothingMoved(c, UpdateStatus::kNonfinite);
  }
}

TEST(EveryUpdateRule, DecayBeyondFloat32IsRefused) {
  for (const char* rule : kRules) {
    Case c = MakeCase("bf16", rule, {{1, 0x1p100f}, {0, 1}}, 0x1p-100f);
    c.weight_decay = 0x1p100f;
    ExpectNothingMoved(c, UpdateStatus::kNonfinite);
  }
}

TEST(EveryUpdateRule, AWeightWantedBeyondTheRangeIsReported) {
  const float largest = 0x1.fep127f;
  for (const char* rule : kRules) {
    if (std::string(rule).starts_with("note")) continue;  // its overflow is infinite
    // Far beyond float32, and not even half a gap of bf16 beyond the largest.
    for (const float update : {0x1p126f, 0x1p118f}) {
      const Case c = MakeCase("bf16", rule, {{largest, 1}, {update, 1}}, 0.5f);
      const Result result = Apply(c);
      EXPECT_EQ(result.outcome.status, UpdateStatus::kSaturated) << rule;
      EXPECT_EQ(result.outcome.saturated, 1u) << rule;
      EXPECT_EQ(result.weights[0], largest) << rule;
    }
  }
}

TEST(EveryUpdateRule, SignsOfEverythingFlipTheResult) {
  for (const char* rule : kRules) {
    const Case c = WithHistory(rule, 300);
    Case flipped = c;
    for (float& x : flipped.arrays.weights) x = -x;
    for (float& x : flipped.arrays.update) x = -x;
    for (float& x : flipped.state.values) x = -x;
    const bool codes = c.rule.kind == UpdateKind::kMasterFp16Scaled;
    // A remainder is added to the bits of the weight, whose sign is apart.
    for (uint16_t& x : flipped.state.words) x ^= codes ? 0x8000 : 0;
    const Result result = Apply(c);
    const Result other = Apply(flipped);
    EXPECT_EQ(result.outcome.moved, other.outcome.moved) << rule;
    EXPECT_GT(result.outcome.moved, 0u) << rule;
    for (size_t i = 0; i < 300; ++i) ASSERT_EQ(result.weights[i], -other.weights[i]) << rule;
    ExpectIdenticalOutcome(result.outcome, other.outcome);
  }
}

TEST(EveryUpdateRule, HasNoSearchToReportUnlessItSearches) {
  for (const char* rule : kRules) {
    if (std::string(rule).starts_with("note")) continue;
    const Result result = Apply(WithHistory(rule, 100));
    EXPECT_EQ(result.outcome.alpha, 0.003f) << rule;
    EXPECT_EQ(result.outcome.matched, 0) << rule;
    EXPECT_EQ(result.outcome.matched_target, 0) << rule;
    EXPECT_EQ(result.outcome.passes, 0) << rule;
  }
}

TEST(EveryUpdateRule, StepsThatMoveNothingAreReportedByNaiveAlone) {
  for (const char* rule : {"naive", "master-fp32", "split-master", "kahan", "stochastic:8"}) {
    const Result result = Apply(MakeCase("bf16", rule, {{1, 2}, {1, 1}}, 0x1p-20f));
    const bool naive = std::string(rule) == "naive";
    EXPECT_EQ(result.outcome.moved, 0u);
    EXPECT_EQ(result.outcome.status, naive ? UpdateStatus::kBelowMinStep : UpdateStatus::kOk)
        << rule;
  }
  // Not zero, though zero in float32.
  EXPECT_EQ(Apply(MakeCase("bf16", "naive", {{0}, {0x1p-100f}}, 0x1p-100f)).outcome.status,
            UpdateStatus::kBelowMinStep);
}

TEST(EveryUpdateRule, GivesTheSameBitsOnEveryBackendAndNumberOfThreads) {
  for (const char* rule : kRules) {
    SCOPED_TRACE(rule);
    const size_t n = 100001;  // enough for three threads
    Case c = MakeCase("bf16", rule, DrawNormal("bf16", n, 76), 1e-3f);
    c.weight_decay = 0.01f;
    c.rule.iterations = 8;  // of the note: nothing new happens later
    const Result expected = Apply(c);
    const ExecutionState restore;
    const auto check = [&](int threads) {
      SetThreadCount(threads);
      const Result result = Apply(c);
      ExpectSameBits(result.weights, expected.weights);
      ExpectSameState(result.state, expected.state);
      ExpectIdenticalOutcome(result.outcome, expected.outcome);
    };
    for (const int threads : {1, 2, 3}) check(threads);
    WithEachBackend([&] { check(2); });
  }
}

TEST(EveryUpdateRule, WorksInPlace) {
  for (const char* rule : kRules) {
    SCOPED_TRACE(rule);
    Case c = WithHistory(rule, 1003);
    c.weight_decay = 0.01f;
    const Result expected = Apply(c);
    std::vector<float> weights = c.arrays.weights;
    WeightUpdate step = StepOf(c);
    const MatrixSpan<float> matrix = HostMatrix(weights, c.Shape());
    step.weights = matrix;
    UpdateState state = update_cases::ToUpdateState(c.state, c.Shape());
    const UpdateOutcome outcome = ApplyUpdate(c.rule, step, c.random, state, matrix);
    ExpectSameBits(weights, expected.weights);
    ExpectSameState(update_cases::FromUpdateState(state), expected.state);
    ExpectIdenticalOutcome(outcome, expected.outcome);
  }
}

TEST(ElementwiseRules, MayReplaceTheUpdate) {
  for (const char* rule : {"naive", "stochastic", "master-fp32", "split-master", "kahan"}) {
    SCOPED_TRACE(rule);
    const Case c = WithHistory(rule, 5003);
    const Result expected = Apply(c);
    std::vector<float> update = c.arrays.update;
    WeightUpdate step = StepOf(c);
    const MatrixSpan<float> matrix = HostMatrix(update, c.Shape());
    step.update = matrix;
    UpdateState state = update_cases::ToUpdateState(c.state, c.Shape());
    const UpdateOutcome outcome = ApplyUpdate(c.rule, step, c.random, state, matrix);
    ExpectSameBits(update, expected.weights);
    ExpectIdenticalOutcome(outcome, expected.outcome);
  }
}

TEST(EveryUpdateRule, AnEmptyTensorIsAZeroUpdate) {
  for (const char* rule : kRules) {
    const Result result = Apply(MakeCase("bf16", rule, {}, 1));
    EXPECT_EQ(result.outcome.status, UpdateStatus::kZeroUpdate) << rule;
    EXPECT_EQ(result.outcome.moved, 0u) << rule;
  }
}

}  // namespace
}  // namespace numsim
