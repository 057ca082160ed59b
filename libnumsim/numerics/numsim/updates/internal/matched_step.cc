#include "numsim/updates/internal/matched_step.h"

#include <algorithm>

#include "numsim/base/error.h"
#include "numsim/base/shared/float_environment.h"
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
  NUMSIM_CHECK(
      new_weights.data() != problem.weights.data() && new_weights.data() != problem.update.data(),
      "{} new weights in place",
      new_weights.size());
  const MatchedTerms terms(problem);
  const auto search = solver == MatchSolver::kSelection ? SearchBySelection : SearchByBisection;
  const SearchResult found = search(problem, terms, new_weights);
  MatchedStep step;
  step.passes = found.passes;
  step.target = terms.Size(terms.target);
  if (!found.group) {
    step.status = UpdateStatus::kSaturated;
    std::copy(problem.weights.begin(), problem.weights.end(), new_weights.begin());
    return step;
  }
  const TieChoice choice = MoveMembers(problem, terms, *found.group, new_weights);
  step.alpha = AlphaOf(found.group->key);
  step.matched = terms.Size(choice.sum);
  if (choice.below_min_step) step.status = UpdateStatus::kBelowMinStep;
  return step;
}

}  // namespace numsim
