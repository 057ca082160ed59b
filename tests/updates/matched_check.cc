#include "tests/updates/matched_check.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "numsim/cast/shared/round_step.h"

namespace numsim {
namespace {

void ExpectDefined(const TakenStep& got, const MatchedResult& want) {
  EXPECT_EQ(got.step.status, want.step.status);
  EXPECT_EQ(std::bit_cast<uint32_t>(got.step.alpha), std::bit_cast<uint32_t>(want.step.alpha))
      << got.step.alpha << " " << want.step.alpha;
  EXPECT_EQ(got.step.matched, want.step.matched);
  EXPECT_EQ(got.step.target, want.step.target);
  EXPECT_GE(got.step.passes, 1);
  size_t wrong = 0;
  for (size_t i = 0; i < want.weights.size(); ++i) {
    if (got.weights[i] == want.weights[i] || ++wrong > 3) continue;
    ADD_FAILURE() << "element " << i << " is " << got.weights[i] << ", not " << want.weights[i];
  }
  EXPECT_EQ(wrong, 0u);
}

// For arrays that are too large for exact arithmetic. tests/cast judges RoundStep itself against
// the oracle, in every format; here it only supplies the weights whose sums the definition
// compares.
MatchedDefinition::RoundAll RoundAllByLibrary(const MatchedProblem& problem) {
  return [problem](float alpha) {
    std::vector<float> rounded(problem.weights.size());
    RoundStep(*problem.plan, problem.weights, problem.update, alpha, rounded);
    return rounded;
  };
}

}  // namespace

TakenStep Take(const MatchedCase& c, MatchSolver solver) {
  TakenStep taken{{}, std::vector<float>(c.weights.size(), 77.0f)};
  taken.step = TakeMatchedStep(c.Problem(), solver, taken.weights);
  return taken;
}

void ExpectSame(const TakenStep& a, const TakenStep& b) {
  EXPECT_EQ(a.step.status, b.step.status);
  EXPECT_EQ(std::bit_cast<uint32_t>(a.step.alpha), std::bit_cast<uint32_t>(b.step.alpha));
  EXPECT_EQ(a.step.matched, b.step.matched);
  EXPECT_EQ(a.step.target, b.step.target);
  size_t different = 0;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    const bool same =
        std::bit_cast<uint32_t>(a.weights[i]) == std::bit_cast<uint32_t>(b.weights[i]);
    if (same || ++different > 3) continue;
    ADD_FAILURE() << "element " << i << ": " << a.weights[i] << " and " << b.weights[i];
  }
  EXPECT_EQ(different, 0u);
}

MatchedResult CheckByOracle(const MatchedCase& c, const oracle::Grid& grid) {
  SCOPED_TRACE(Describe(c));
  const MatchedProblem problem = c.Problem();
  const MatchedResult want = MatchedDefinition(problem, RoundAllByOracle(problem, grid)).Step();
  for (MatchSolver solver : kSolvers) {
    SCOPED_TRACE(solver == MatchSolver::kSelection ? "selection" : "bisection");
    ExpectDefined(Take(c, solver), want);
  }
  ExpectSame(Take(c, kSolvers[0]), Take(c, kSolvers[1]));
  return want;
}

MatchedResult CheckByLibrary(const MatchedCase& c) {
  SCOPED_TRACE(Describe(c));
  const MatchedProblem problem = c.Problem();
  const MatchedDefinition definition(problem, RoundAllByLibrary(problem));
  const TakenStep got = Take(c, MatchSolver::kSelection);
  {
    SCOPED_TRACE("selection and bisection");
    ExpectSame(got, Take(c, MatchSolver::kBisection));
  }
  const float alpha = got.step.alpha;
  MatchedResult want = definition.OutOfReach();
  if (alpha == 0) {
    EXPECT_FALSE(definition.Reaches(std::numeric_limits<float>::max()));
  } else {
    EXPECT_TRUE(definition.Reaches(alpha)) << alpha;
    EXPECT_FALSE(definition.Reaches(std::nextafter(alpha, 0.0f))) << alpha;
    want = definition.StepAt(alpha);
  }
  ExpectDefined(got, want);
  return want;
}

}  // namespace numsim
