// The pass that takes a step on a device, one thread after the other on the host, against
// ApplyUpdate.
#include "numsim/updates/internal/update_step_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/updates/shared/update_parts.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Case;
using update_reference::Result;

// The arrays of a step, with garbage where it keeps what it overwrites.
struct HostArrays {
  update_cases::Arrays arrays;
  update_reference::State state;
  std::vector<float> out, kept_weights, kept_values;
  std::vector<uint16_t> kept_words, halves;
  std::vector<uint32_t> lost;
};

DeviceStep StepOf(const Case& c, bool in_place, HostArrays& on) {
  const FormatSpec format = ParseFormat(c.format).spec;
  const EncodePlan own = OwnPlan(c.rule, format);
  const size_t n = c.arrays.weights.size();
  on.arrays = c.arrays;
  on.state = c.state;
  on.out.assign(n, -77.0f);
  on.kept_weights.assign(n, -55.0f);
  on.kept_values.assign(n, -66.0f);
  on.kept_words.assign(n, 0xABCD);
  on.halves.assign(n, 0xABCD);
  on.lost.assign((n + kSumBlock - 1) / kSumBlock * kStepThreads, 0x12345678);
  DeviceStep step;
  step.kind = c.rule.kind;
  step.rule = MakeStepRule(step.kind == UpdateKind::kStochastic ? own : WeightPlan(format));
  if (step.kind == UpdateKind::kKahan) step.own = MakeStepRule(own);
  step.largest = MaxFinite(format);
  step.limit = static_cast<double>(step.largest);
  step.weights = on.arrays.weights.data();
  step.update = on.arrays.update.data();
  step.new_weights = in_place ? on.arrays.weights.data() : on.out.data();
  step.values = on.state.values.empty() ? nullptr : on.state.values.data();
  step.words = on.state.words.empty() ? nullptr : on.state.words.data();
  step.n = n;
  step.learning_rate = c.learning_rate;
  step.random = c.random;
  if (in_place) step.kept.weights = on.kept_weights.data();
  if (step.values != nullptr) step.kept.values = on.kept_values.data();
  if (step.words != nullptr) step.kept.words = on.kept_words.data();
  const bool halves = step.kind == UpdateKind::kKahan && own.format.mantissa_bits <= 7;
  if (halves) step.kept.halves = on.halves.data();
  if (halves || step.kind == UpdateKind::kMasterFp32) step.kept.lost = on.lost.data();
  return step;
}

// Takes the step of a block as a group of threads of the device does.
template <bool kWhole, class Rule>
void TakeBlock(const DeviceStep& step, const Rule& rule, size_t block, StepTotals& totals) {
  std::vector<BlockThread<Rule, kWhole>> threads;
  for (unsigned t = 0; t < kStepThreads; ++t) threads.emplace_back(step, rule, block, t);
  const auto terms = std::make_unique<PartTerms>();
  double sums[kStepSums * kSumLanes] = {};
  for (unsigned part = 0; part < threads[0].Parts(); ++part) {
    for (auto& thread : threads) {
      PartNumbers numbers;
      thread.Load(part, numbers);
      thread.Take(part, numbers, *terms);
    }
    for (unsigned a = 0; a < kStepSums * kSumLanes; ++a) sums[a] = AddPart(*terms, a, sums[a]);
  }
  uint64_t counted = 0;
  for (const auto& thread : threads) counted += thread.Finish().Packed();
  totals.moved += counted & 0xFFFF;
  totals.saturated += counted >> 16 & 0xFFFF;
  totals.not_finite += counted >> 32;
  for (unsigned s = 0; s < kStepSums; ++s) {
    double total = 0;
    for (unsigned lane = 0; lane < kSumLanes; ++lane) total += sums[s * kSumLanes + lane];
    totals.sums[s] += total;
  }
}

template <class Rule>
StepTotals TakeAll(const DeviceStep& step, const Rule& rule) {
  StepTotals totals;
  for (size_t block = 0; block * kSumBlock < step.n; ++block) {
    if ((block + 1) * kSumBlock <= step.n) {
      TakeBlock<true>(step, rule, block, totals);
    } else {
      TakeBlock<false>(step, rule, block, totals);
    }
  }
  return totals;
}

StepTotals Take(const DeviceStep& step) {
  constexpr StepPath kGrid = StepPath::kGrid, kNearest = StepPath::kNearest;
  const bool on_grid = step.rule.path == kGrid;
  switch (step.kind) {
    case UpdateKind::kNaive:
      if (on_grid) return TakeAll(step, NaiveRule<kGrid>{});
      return TakeAll(step, NaiveRule<kNearest>{});
    case UpdateKind::kMasterFp32:
      if (on_grid) return TakeAll(step, MasterFp32Rule<kGrid>{});
      return TakeAll(step, MasterFp32Rule<kNearest>{});
    case UpdateKind::kStochastic:
      EXPECT_EQ(step.rule.path, StepPath::kStochasticGrid);
      return TakeAll(step, StochasticRuleOn<StepPath::kStochasticGrid>{});
    case UpdateKind::kSplitMaster:
      return TakeAll(step, SplitMasterRule{});
    default:
      if (on_grid && step.own.path == kGrid) return TakeAll(step, KahanRuleOn<kGrid, kGrid>{});
      if (on_grid) return TakeAll(step, KahanRuleOn<kGrid, kNearest>{});
      return TakeAll(step, KahanRuleOn<kNearest, kNearest>{});
  }
}

// The outcome as update_on_device.cc concludes it.
UpdateOutcome OutcomeOf(const Case& c, const StepTotals& totals) {
  const double update_square = totals.sums[0];
  if (totals.not_finite != 0 || !std::isfinite(update_square)) {
    return {.status = UpdateStatus::kNonfinite};
  }
  if (update_square == 0 || c.learning_rate == 0) {
    return {.status = UpdateStatus::kZeroUpdate, .alpha = c.learning_rate};
  }
  StepSums sums{totals.sums[1], totals.sums[2], totals.moved, totals.saturated};
  return CompleteOutcome(
      c.rule.kind, c.learning_rate, sums, update_square, {.alpha = c.learning_rate});
}

void ExpectEqualBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(SameBits(a[i], b[i])) << i;
}

// Takes the step and compares it with that of ApplyUpdate; then takes it back.
void Check(const Case& c, bool in_place) {
  SCOPED_TRACE(c.format + " " + ToString(c.rule) + " n " + std::to_string(c.arrays.weights.size()) +
               " lr " + std::to_string(c.learning_rate) + (in_place ? " in place" : ""));
  const Result expected = update_cases::Apply(c);
  HostArrays on;
  const DeviceStep step = StepOf(c, in_place, on);
  const UpdateOutcome outcome = OutcomeOf(c, Take(step));
  update_cases::ExpectIdenticalOutcome(outcome, expected.outcome);
  const std::vector<float>& out = in_place ? on.arrays.weights : on.out;
  const bool taken =
      outcome.status != UpdateStatus::kNonfinite && outcome.status != UpdateStatus::kZeroUpdate;
  if (taken) {
    update_cases::ExpectSameBits(out, expected.weights);
    update_cases::ExpectSameState(on.state, expected.state);
  }
  for (size_t i = 0; i < step.n; ++i) RestoreElement(step, i);
  ExpectEqualBits(out, c.arrays.weights);
  ExpectEqualBits(on.arrays.weights, c.arrays.weights);
  ExpectEqualBits(on.state.values, c.state.values);
  EXPECT_EQ(on.state.words, c.state.words);
}

const std::vector<std::string> kStepRules = {"naive",
                                             "stochastic",
                                             "stochastic:16",
                                             "stochastic:7",
                                             "master-fp32",
                                             "kahan",
                                             "kahan:bf16",
                                             "kahan:fp32",
                                             "split-master"};

TEST(StepKernel, TakesTheStepsOfApplyUpdate) {
  for (const char* const format : {"bf16", "e4m3fn", "e2m1fn", "fp16", "int8", "fp32"}) {
    for (const std::string& rule : kStepRules) {
      if (!Serves(ParseUpdateRule(rule), ParseFormat(format))) continue;
      if (std::string(format) == "fp32" && rule.starts_with("stochastic")) continue;
      for (const float lr : {0.01f, 1.0f}) {
        Case c =
            update_cases::MakeCase(format, rule, update_cases::DrawHard(format, lr, 2500, 4), lr);
        for (const bool in_place : {false, true}) Check(c, in_place);
        const Result next = update_cases::Apply(c);
        c.arrays.weights = next.weights;
        c.state = next.state;
        std::reverse(c.arrays.update.begin(), c.arrays.update.end());
        Check(c, false);
      }
    }
  }
}

TEST(StepKernel, EverySizeHasItsTail) {
  for (const std::string& rule : kStepRules) {
    for (const size_t n : {1u, 7u, 16u, 63u, 65u, 511u, 513u, 4095u, 4096u, 4097u, 8192u, 9001u}) {
      Check(update_cases::MakeCase("bf16", rule, update_cases::DrawNormal("bf16", n, n), 0.01f),
            n % 2 == 0);
    }
  }
}

TEST(StepKernel, TakesBackAStepOfNumbersThatAreNotFiniteOrZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::string& rule : kStepRules) {
    const Case whole = update_cases::WithHistory(rule, 9000);
    for (const bool in_place : {false, true}) {
      for (const float bad : {kInfinity, -kInfinity, std::nanf("5"), -std::nanf("")}) {
        for (const size_t at : {size_t{0}, size_t{4999}, size_t{8999}}) {
          Case c = whole;
          c.arrays.update[at] = bad;
          Check(c, in_place);
          c = whole;
          c.arrays.weights[at] = bad;
          Check(c, in_place);
          c = whole;
          if (c.state.values.empty()) continue;
          c.state.values[at] = bad;
          Check(c, in_place);
        }
      }
      Case c = whole;
      c.learning_rate = 0;
      Check(c, in_place);
      std::fill(c.arrays.update.begin(), c.arrays.update.end(), -0.0f);
      c.learning_rate = 0.1f;
      Check(c, in_place);
    }
  }
}

// With small steps most masters follow from the step. Compensations are in the upper halves, except
// for numbers that are not of their format.
TEST(StepKernel, KeepsFewValues) {
  const auto kept_by = [](const Case& c) {
    HostArrays on;
    Take(StepOf(c, false, on));
    return std::count_if(
        on.kept_values.begin(), on.kept_values.end(), [](float x) { return x != -66.0f; });
  };
  const update_cases::Arrays drawn = update_cases::DrawNormal("bf16", 40960, 2);
  const auto masters = kept_by(update_cases::MakeCase("bf16", "master-fp32", drawn, 1e-3f));
  EXPECT_GT(masters, 0);
  EXPECT_LT(masters, 40960 / 50);
  Case c = update_cases::MakeCase("bf16", "kahan", drawn, 1e-3f);
  EXPECT_EQ(kept_by(c), 0);
  c.state.values[777] = 0x1.000002p-9f;
  EXPECT_EQ(kept_by(c), 1);
  Check(c, false);
}

}  // namespace
}  // namespace numsim
