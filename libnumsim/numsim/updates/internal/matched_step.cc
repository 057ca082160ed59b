#include "numsim/updates/internal/matched_step.h"

#include <algorithm>

#include "numsim/base/error.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/updates/internal/matched_search.h"

namespace numsim {

MatchedStep TakeMatchedStep(const MatchedProblem& problem,
                            MatchSolver solver,
                            std::span<float> new_weights) {
  const DefaultFloatEnvironment environment;
  NUMSIM_CHECK(problem.weights.size() == problem.update.size() &&
                   problem.weights.size() == new_weights.size(),
               "{} weights, {} updates, {} new weights",
               problem.weights.size(),
               problem.update.size(),
               new_weights.size());
  NUMSIM_CHECK(problem.learning_rate > 0 && problem.update_square > 0,
               "learning rate {}, squared update {}",
               problem.learning_rate,
               problem.update_square);
  const MatchedTerms terms(problem);
  const SearchResult found = solver == MatchSolver::kSelection ? SearchBySelection(problem, terms)
                                                               : SearchByBisection(problem, terms);
  MatchedStep step;
  step.passes = found.passes;
  step.target = terms.Size(terms.target);
  if (!found.group) {
    step.status = UpdateStatus::kSaturated;
    std::copy(problem.weights.begin(), problem.weights.end(), new_weights.begin());
    return step;
  }
  RoundStepOnHost(
      *problem.plan, problem.weights, problem.update, AlphaOf(found.group->key - 1), new_weights);
  const TieChoice choice = MoveMembers(problem, terms, *found.group, new_weights);
  ++step.passes;
  step.alpha = AlphaOf(found.group->key);
  step.matched = terms.Size(choice.sum);
  if (choice.below_min_step) step.status = UpdateStatus::kBelowMinStep;
  return step;
}

}  // namespace numsim
