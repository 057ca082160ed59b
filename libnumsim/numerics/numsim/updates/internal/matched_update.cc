// Update rules norm-matched and projection-matched.
#include <vector>

#include "numsim/base/keyword.h"
#include "numsim/updates/internal/matched_step.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

constexpr Keyword<SmallStep> kSmallSteps[] = {
    {"one", SmallStep::kOneAtRandom},
    {"none", SmallStep::kNone},
};

class Matched final : public UpdateMethod {
 public:
  constexpr Matched()
      : UpdateMethod(
            {.has_scope = true, .searches = true, .on_device = true, .needs_symmetry = true}) {}

  void SetArgument(UpdateRule& rule,
                   std::string_view argument,
                   std::string_view whole) const override {
    rule.small_step =
        ParseKeyword(kSmallSteps, fmt::format("update rule '{}': small step", whole), argument);
  }

  std::string ArgumentText(const UpdateRule& rule) const override {
    if (rule.small_step == SmallStep::kOneAtRandom) return "";
    return std::string(KeywordToString(kSmallSteps, rule.small_step));
  }

  GroupResult StepGroup(const UpdateJob& job, const UpdateGroup& group) const override {
    std::span<const float> before = group.range.Of(job.weights);
    std::vector<float> copy;
    if (job.InPlace()) {
      copy.assign(before.begin(), before.end());
      before = copy;
    }
    MatchedProblem problem = MatchedProblemOf(job, group.update_square);
    problem.weights = before;
    problem.update = group.range.Of(job.update);
    problem.first_index = group.range.begin;
    const std::span<float> after = group.range.Of(job.new_weights);
    const MatchedStep step = TakeMatchedStep(problem, job.rule->solver, after);
    GroupResult result;
    result.outcome.status = step.status;
    result.outcome.alpha = step.alpha;
    result.outcome.matched = step.matched;
    result.outcome.matched_target = step.target;
    result.outcome.passes = step.passes;
    result.sums = SumStep(before, after, problem.update, step.alpha, job.LimitAt(step.alpha));
    return result;
  }
};

constexpr Matched kMethod;

}  // namespace

MatchedProblem MatchedProblemOf(const UpdateJob& job, double update_square) {
  MatchedProblem problem;
  problem.plan = &job.plan;
  problem.learning_rate = job.learning_rate;
  problem.update_square = update_square;
  problem.quantity = job.rule->kind == UpdateKind::kNormMatched ? MatchedQuantity::kNorm
                                                                : MatchedQuantity::kProjection;
  problem.small_step = job.rule->small_step;
  problem.random = job.random;
  return problem;
}

const UpdateMethod& NormMatchedMethod() { return kMethod; }

const UpdateMethod& ProjectionMatchedMethod() { return kMethod; }

}  // namespace numsim
