// Rules of which each row or block has a target, an alpha or a scale of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/updates/update_rule.h"
#include "tests/reference/updates/update_reference.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Apply;
using update_cases::Case;
using update_cases::DrawHard;
using update_cases::DrawNormal;
using update_cases::ExpectIdenticalOutcome;
using update_cases::ExpectSameBits;
using update_cases::ExpectSameState;
using update_cases::MakeCase;
using update_cases::Restart;
using update_cases::WithHistory;
using update_reference::Result;

// Columns begin .. end of one row of a case, as a case with one group.
Case GroupOf(const Case& c, size_t group, size_t begin, size_t end) {
  const auto part = [&](const auto& all) {
    auto copy = all;
    if (!all.empty()) {
      copy.assign(all.begin() + static_cast<ptrdiff_t>(begin),
                  all.begin() + static_cast<ptrdiff_t>(end));
    }
    return copy;
  };
  Case one = c;
  one.rule.scope = {};
  one.arrays = {part(c.arrays.weights), part(c.arrays.update)};
  one.rows = 1;
  one.cols = end - begin;
  one.state.values = part(c.state.values);
  one.state.words = part(c.state.words);
  if (!c.state.scales.empty()) one.state.scales = {c.state.scales[group]};
  return one;
}

TEST(UpdateGroups, EqualSeparateCalls) {
  constexpr size_t kRows = 5, kCols = 37, kBlock = 16;
  for (const std::string kind : {"master-fp16-scaled", "note-as-printed"}) {
    for (const std::string scope : {"@row", "@block:16"}) {
      for (const std::string format : {"bf16", "e4m3fn"}) {
        SCOPED_TRACE(kind + scope + " " + format);
        Case c = MakeCase(format, kind + scope, DrawNormal(format, kRows * kCols, 75), 0.01f);
        for (size_t i = 0; i < kRows * kCols; ++i) {
          c.arrays.update[i] *= static_cast<float>(1 + i / 7);
        }
        c.rows = kRows;
        c.cols = kCols;
        c.weight_decay = 0.1f;
        update_cases::Restart(c);
        const Result result = Apply(c);
        ASSERT_EQ(result.groups.size(), c.rule.scope.Count(kRows, kCols));
        std::vector<float> joined;
        update_reference::State state;
        uint64_t moved = 0;
        UpdateStatus status = UpdateStatus::kOk;
        int passes = 0;
        const size_t width = scope == "@row" ? kCols : kBlock;
        size_t group = 0;
        for (size_t row = 0; row < kRows; ++row) {
          for (size_t col = 0; col < kCols; col += width, ++group) {
            const size_t begin = row * kCols + col;
            const size_t end = row * kCols + std::min(col + width, kCols);
            const Result one = Apply(GroupOf(c, group, begin, end));
            joined.insert(joined.end(), one.weights.begin(), one.weights.end());
            state.words.insert(state.words.end(), one.state.words.begin(), one.state.words.end());
            state.scales.insert(
                state.scales.end(), one.state.scales.begin(), one.state.scales.end());
            ExpectIdenticalOutcome(result.groups[group], one.outcome);
            moved += one.outcome.moved;
            status = std::max(status, one.outcome.status);
            passes = std::max(passes, one.outcome.passes);
          }
        }
        ExpectSameBits(result.weights, joined);
        ExpectSameState(result.state, state);
        EXPECT_EQ(result.outcome.moved, moved);
        EXPECT_EQ(result.outcome.status, status);
        EXPECT_EQ(result.outcome.passes, passes);
      }
    }
  }
}

TEST(UpdateGroups, TotalsAreThoseOfTheWholeTensor) {
  for (const char* rule : {"master-fp16-scaled@row", "note-as-printed@block:50"}) {
    Case c = WithHistory(rule, 180);
    const Result result = Apply(c);
    double step_square = 0, update_square = 0, projection = 0;
    for (size_t i = 0; i < 180; ++i) {
      const double step = static_cast<double>(result.weights[i]) - c.arrays.weights[i];
      const double u = c.arrays.update[i];
      step_square += step * step;
      update_square += u * u;
      projection += step * u;
    }
    const double rate = c.learning_rate;
    const UpdateOutcome& outcome = result.outcome;
    EXPECT_NEAR(outcome.achieved_norm, std::sqrt(step_square), 1e-12) << rule;
    EXPECT_NEAR(outcome.target_norm, rate * std::sqrt(update_square), 1e-12) << rule;
    EXPECT_NEAR(outcome.achieved_projection, projection, 1e-12) << rule;
    EXPECT_NEAR(outcome.target_projection, rate * update_square, 1e-12) << rule;
  }
}

TEST(UpdateGroups, RulesWithoutAScopeReportOneGroup) {
  for (const char* rule : {"naive", "stochastic", "master-fp32", "split-master", "kahan"}) {
    Case c = WithHistory(rule, 120);
    c.rows = 4;
    c.cols = 30;
    const Result result = Apply(c);
    ASSERT_EQ(result.groups.size(), 1u) << rule;
    ExpectIdenticalOutcome(result.groups[0], result.outcome);
  }
}

TEST(UpdateGroups, OneNonfiniteGroupRefusesTheWholeStep) {
  for (const char* rule : {"note-as-printed@row", "master-fp16-scaled@row"}) {
    Case c = MakeCase("bf16", rule, DrawNormal("bf16", 60, 74), 0.5f);
    c.rows = 3;
    c.cols = 20;
    Restart(c);
    c.arrays.update[25] = std::numeric_limits<float>::quiet_NaN();
    const Result result = Apply(c);
    ExpectSameBits(result.weights, c.arrays.weights);
    ExpectSameState(result.state, c.state);
    EXPECT_EQ(result.outcome.status, UpdateStatus::kNonfinite) << rule;
    ASSERT_EQ(result.groups.size(), 3u);
    for (const UpdateOutcome& group : result.groups) {
      EXPECT_EQ(group.status, UpdateStatus::kNonfinite) << rule;
    }
  }
}

TEST(UpdateGroups, AGroupOfZerosAmongOthersStaysAndIsNotTheStatusOfAll) {
  for (const char* rule : {"note-as-printed@row", "master-fp16-scaled@row"}) {
    Case c = MakeCase("bf16", rule, DrawNormal("bf16", 60, 78), 0.5f);
    c.rows = 3;
    c.cols = 20;
    Restart(c);
    for (size_t i = 20; i < 40; ++i) c.arrays.update[i] = -0.0f;
    c.arrays.weights[30] = -0.0f;
    const Result result = Apply(c);
    EXPECT_NE(result.outcome.status, UpdateStatus::kZeroUpdate) << rule;
    ASSERT_EQ(result.groups.size(), 3u);
    EXPECT_EQ(result.groups[1].status, UpdateStatus::kZeroUpdate) << rule;
    EXPECT_GT(result.groups[0].moved, 0u) << rule;
    EXPECT_GT(result.groups[2].moved, 0u) << rule;
    EXPECT_EQ(result.outcome.moved, result.groups[0].moved + result.groups[2].moved);
    const auto middle = [](const std::vector<float>& x) {
      return std::vector<float>(x.begin() + 20, x.begin() + 40);
    };
    ExpectSameBits(middle(result.weights), middle(c.arrays.weights));
    update_cases::ExpectAsDefined(c);
  }
}

TEST(UpdateGroups, ManySmallGroupsAreAsDefined) {
  for (const char* rule : {"master-fp16-scaled@block:3", "note-as-printed@block:3"}) {
    Case c = MakeCase("e4m3fn", rule, DrawHard("e4m3fn", 1, 70, 77), 0.01f);
    c.rows = 7;
    c.cols = 10;
    Restart(c);
    update_cases::ExpectAsDefined(c);
  }
}

}  // namespace
}  // namespace numsim
