// Checks of TakeMatchedStep by its definition.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/reference/updates/matched_reference.h"
#include "tests/updates/matched_problems.h"

namespace numsim {

inline constexpr std::array kSolvers = {MatchSolver::kSelection, MatchSolver::kBisection};

struct TakenStep {
  MatchedStep step;
  std::vector<float> weights;
};

TakenStep Take(const MatchedCase& c, MatchSolver solver);

// Bit for bit, except the number of passes.
void ExpectSame(const TakenStep& a, const TakenStep& b);

// Checks both solvers against the definition, which rounds by exact arithmetic and searches all
// float32: for small arrays. -0 is +0. Returns what is right.
MatchedResult CheckByOracle(const MatchedCase& c, const oracle::Grid& grid);

// Checks for arrays of any size that both solvers agree bit for bit, that their alpha is the least
// that reaches the target, and that the step is the one defined there. Rounds by RoundStep.
MatchedResult CheckByLibrary(const MatchedCase& c);

}  // namespace numsim
