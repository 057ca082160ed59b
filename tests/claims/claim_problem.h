// Small tables of outcomes and claims about them, for tests of verdicts.
#pragma once

#include <limits>

#include "experiments/claims/verdict.h"

namespace numsim::experiments {

inline constexpr double kDivergedRun = std::numeric_limits<double>::infinity();

// Two arms over three seeds. Their gaps 1, 2, 3 have mean 2 and standard error sqrt(1/3), with two
// degrees of freedom.
inline const OutcomeTable kTwoArms = {{"base", "other"}, 3, {5, 7, 6, 6, 9, 9}};

inline ClaimTest Difference(double margin, int side = 1) {
  return {.kind = ClaimKind::kDifference,
          .contrasts = {Gap("other", "base")},
          .side = side,
          .margin = margin};
}

inline ClaimTest Equivalence(double margin) {
  return {.kind = ClaimKind::kEquivalence, .contrasts = {Gap("other", "base")}, .margin = margin};
}

// Gaps of "other" over "base" of mean 2 and of "top" over "other" of mean 4, with little scatter.
inline const OutcomeTable kThreeArms = {
    {"base", "other", "top"}, 3, {5, 7, 6, 7.2, 8.9, 7.9, 11.1, 12.9, 12}};

}  // namespace numsim::experiments
