// Steps whose arrays do not fit throw Error and move nothing.
#include "tests/support/misuse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/updates/step_sums.h"
#include "numsim/updates/update_rule.h"

namespace numsim {
namespace {

// A step of 2 x 3 weights under a rule. A test changes one of its parts.
struct MisusedStep {
  explicit MisusedStep(std::string_view text) : rule(ParseUpdateRule(text)) {
    state = StartUpdates(rule, step.format, HostMatrix(weights, {2, 3}), moved);
    step.weights = moved;
    step.update = HostMatrix(update, {2, 3});
  }

  std::string Error() {
    return ErrorOf([&] { ApplyUpdate(rule, step, {}, state, moved); });
  }

  UpdateRule rule;
  std::vector<float> weights = std::vector<float>(6, 1.0f), update = weights, new_weights = weights;
  MatrixSpan<float> moved = HostMatrix(new_weights, {2, 3});
  WeightUpdate step{.format = ParseFormat("bf16").spec, .learning_rate = 0.5f};
  UpdateState state;
};

// They search along numbers that come in pairs, w and -w; int4 has -8 alone.
TEST(UpdateMisuse, MatchedRulesNeedTheOppositeOfEachNumber) {
  for (const char* const text : {"norm-matched", "projection-matched"}) {
    const UpdateRule rule = ParseUpdateRule(text);
    EXPECT_EQ(ErrorOf([&] { CheckUpdateRule(rule, ParseFormat("int4")); }),
              fmt::format("update rule {}: weights of format int4, whose lowest number has no "
                          "opposite; expected int4:range=symmetric",
                          text));
    CheckUpdateRule(rule, ParseFormat("int4:range=symmetric"));
    MisusedStep step(text);
    step.step.format = ParseFormat("fixed4.4").spec;
    EXPECT_EQ(step.Error(),
              fmt::format("update rule {}: weights of format fixed4.4, whose lowest number has no "
                          "opposite; expected fixed4.4:range=symmetric",
                          text));
  }
  CheckUpdateRule(ParseUpdateRule("stochastic"), ParseFormat("int4"));
}

// Every kind of rule checks the same arguments before anything else.
TEST(UpdateMisuse, ArraysAndNumbersOfAStepAreChecked) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  struct Case {
    std::function<void(MisusedStep&)> change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](MisusedStep&) {}, kNoError},
      {[](MisusedStep& p) { p.step.weights = p.step.weights.Columns(0, 2); },
       "ApplyUpdate: 'weights' has stride 3, expected 2"},
      {[](MisusedStep& p) { p.step.update = p.step.update.Rows(0, 1); },
       "ApplyUpdate: 'update' is 1 x 3, expected 2 x 3"},
      {[](MisusedStep& p) { p.step.update = p.step.update.As(3, 2); },
       "ApplyUpdate: 'update' is 3 x 2, expected 2 x 3"},
      {[](MisusedStep& p) { p.moved = p.moved.As(6, 1); },
       "ApplyUpdate: 'new_weights' is 6 x 1, expected 2 x 3"},
      {[&](MisusedStep& p) { p.step.learning_rate = -1; },
       "ApplyUpdate: learning_rate is -1, expected finite and >= 0"},
      {[&](MisusedStep& p) { p.step.learning_rate = infinity; },
       "ApplyUpdate: learning_rate is inf, expected finite and >= 0"},
      {[&](MisusedStep& p) { p.step.weight_decay = nan; },
       "ApplyUpdate: weight_decay is nan, expected finite"},
  };
  for (const UpdateKind kind : UpdateKinds()) {
    for (const Case& c : cases) {
      MisusedStep problem(ToString(kind));
      c.change(problem);
      const std::vector<float> before = problem.new_weights;
      EXPECT_EQ(problem.Error(), c.message) << ToString(kind);
      if (c.message != kNoError) {
        EXPECT_EQ(problem.new_weights, before) << ToString(kind);
      }
    }
  }
}

TEST(UpdateMisuse, TheStateOfAnotherRuleThrows) {
  MisusedStep naive("naive"), master("master-fp32"), scaled("master-fp16-scaled@row");
  std::swap(naive.state, master.state);
  EXPECT_EQ(naive.Error(), "ApplyUpdate: 'state.values' has 6 elements, expected 0");
  EXPECT_EQ(master.Error(), "ApplyUpdate: 'state.values' has 0 elements, expected 6");
  scaled.state.scales.Resize(1, 1);
  EXPECT_EQ(scaled.Error(), "ApplyUpdate: 'state.scales' has 1 elements, expected 2");
  EXPECT_EQ(ErrorOf([&] { KnownWeights(master.rule, master.moved, master.state); }),
            "KnownWeights: 'state.values' has 0 elements, expected 6");
  EXPECT_EQ(ErrorOf([&] { KnownWeights(naive.rule, naive.moved.Columns(0, 2), UpdateState()); }),
            "KnownWeights: 'weights' has stride 3, expected 2");
}

TEST(UpdateMisuse, RulesThatTheWeightsDoNotAllowThrow) {
  MisusedStep split("split-master"), note("note-as-printed"), tile("norm-matched");
  split.step.format = ParseFormat("fp16").spec;
  EXPECT_EQ(split.Error(), "update rule split-master: weights of fp16, expected bf16");
  note.rule.iterations = 0;
  EXPECT_EQ(note.Error(), "update rule note-as-printed: 0 iterations, expected at least 1");
  tile.rule.scope = ParseScaleLayout("tile:2x2");
  EXPECT_EQ(tile.Error(),
            "update rule norm-matched: scope tile:2x2, expected tensor, row or block:N");
}

TEST(UpdateMisuse, StartsAndSumsAreChecked) {
  const FormatSpec bf16 = ParseFormat("bf16").spec;
  const UpdateRule naive = ParseUpdateRule("naive");
  std::vector<float> six(6), five(5);
  ExpectErrors({
      {[&] {
         StartUpdates(naive, bf16, HostMatrix(five, {1, 5}), HostMatrix(six, {2, 3}));
       },
       "StartUpdates: 'initial' is 1 x 5, expected 2 x 3"},
      {[&] {
         StartUpdates(naive, bf16, HostMatrix(six, {2, 3}).Columns(0, 2), HostMatrix(six, {3, 2}));
       },
       "StartUpdates: 'initial' is 2 x 2, expected 3 x 2"},
      {[&] { SumStep(six, five, six, 1, 1); }, "SumStep: 'after' has 5 elements, expected 6"},
      {[&] { SumStep(six, six, five, 1, 1); }, "SumStep: 'update' has 5 elements, expected 6"},
  });
}

}  // namespace
}  // namespace numsim
