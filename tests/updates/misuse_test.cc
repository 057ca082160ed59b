// Steps whose arrays do not fit throw Error and move nothing.
#include "tests/support/misuse.h"

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
    state = StartUpdates(rule, step.format, 2, 3, weights, new_weights);
    step.weights = new_weights;
    step.update = update;
  }

  std::string Error() {
    return ErrorOf([&] { ApplyUpdate(rule, step, {}, state, new_weights); });
  }

  UpdateRule rule;
  std::vector<float> weights = std::vector<float>(6, 1.0f), update = weights, new_weights = weights;
  WeightUpdate step{
      .format = ParseFormat("bf16").spec, .rows = 2, .cols = 3, .learning_rate = 0.5f};
  UpdateState state;
};

// Every kind of rule checks the same arguments before anything else.
TEST(UpdateMisuse, ArraysAndNumbersOfAStepAreChecked) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  struct Case {
    std::function<void(MisusedStep&)> change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](MisusedStep&) {}, kNoError},
      {[](MisusedStep& p) { p.step.weights = p.step.weights.first(5); },
       "ApplyUpdate: 'weights' has 5 elements, expected 6 (2 x 3)"},
      {[](MisusedStep& p) { p.step.update = p.step.update.first(3); },
       "ApplyUpdate: 'update' has 3 elements, expected 6 (2 x 3)"},
      {[](MisusedStep& p) { p.step.rows = 3; },
       "ApplyUpdate: 'weights' has 6 elements, expected 9 (3 x 3)"},
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

TEST(UpdateMisuse, ResultsOfAnotherSizeThrow) {
  MisusedStep p("naive");
  std::vector<float> more(7);
  ExpectErrors({
      {[&] { ApplyUpdate(p.rule, p.step, {}, p.state, more); },
       "ApplyUpdate: 'new_weights' has 7 elements, expected 6 (2 x 3)"},
  });
}

TEST(UpdateMisuse, TheStateOfAnotherRuleThrows) {
  MisusedStep naive("naive"), master("master-fp32"), scaled("master-fp16-scaled@row");
  std::swap(naive.state, master.state);
  EXPECT_EQ(naive.Error(), "ApplyUpdate: 'state.values' has 6 elements, expected 0");
  EXPECT_EQ(master.Error(), "ApplyUpdate: 'state.values' has 0 elements, expected 6");
  scaled.state.scales.pop_back();
  EXPECT_EQ(scaled.Error(), "ApplyUpdate: 'state.scales' has 1 elements, expected 2");
  EXPECT_EQ(ErrorOf([&] { KnownWeights(master.rule, 2, 3, master.weights, master.state); }),
            "KnownWeights: 'state.values' has 0 elements, expected 6");
  EXPECT_EQ(ErrorOf([&] { KnownWeights(naive.rule, 2, 4, naive.weights, {}); }),
            "KnownWeights: 'weights' has 6 elements, expected 8 (2 x 4)");
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
      {[&] { StartUpdates(naive, bf16, 2, 3, five, six); },
       "StartUpdates: 'initial' has 5 elements, expected 6 (2 x 3)"},
      {[&] { StartUpdates(naive, bf16, 2, 3, six, five); },
       "StartUpdates: 'weights' has 5 elements, expected 6 (2 x 3)"},
      {[&] { SumStep(six, five, six, 1, 1); }, "SumStep: 'after' has 5 elements, expected 6"},
      {[&] { SumStep(six, six, five, 1, 1); }, "SumStep: 'update' has 5 elements, expected 6"},
  });
}

}  // namespace
}  // namespace numsim
