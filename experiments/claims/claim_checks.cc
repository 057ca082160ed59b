#include "experiments/claims/claim_checks.h"

#include <cmath>

#include "numsim/base/require.h"

namespace numsim::experiments {
namespace {

void CheckContrast(const Contrast& contrast) {
  double sum = 0, size = 0;
  for (const ContrastTerm& term : contrast) {
    sum += term.weight;
    size += std::abs(term.weight);
  }
  NUMSIM_REQUIRE(size > 0 && std::abs(sum) <= 1e-12 * size,
                 "TestClaim: the weights of a contrast sum to {}, expected 0 and not all of them 0",
                 sum);
}

// A ratio compares two arms. That it is below a margin claims at most half of what is possible.
void CheckRatio(const ClaimTest& test) {
  for (const Contrast& contrast : test.contrasts) {
    NUMSIM_REQUIRE(contrast.size() == 2 && contrast[0].weight == 1 && contrast[1].weight == -1,
                   "TestClaim: a ratio is of one arm to another, with weights 1 and -1");
  }
  const bool above = test.side > 0;
  NUMSIM_REQUIRE(std::isfinite(test.margin) &&
                     (above ? test.margin >= 1 : test.margin >= 0.5 && test.margin <= 1),
                 "TestClaim: the margin of a ratio that is {} is {}, expected {}",
                 above ? "larger" : "smaller",
                 test.margin,
                 above ? "at least 1" : "0.5 to 1, at most half of the possible effect");
}

}  // namespace

void CheckTest(const ClaimTest& test) {
  NUMSIM_REQUIRE(test.kind != ClaimKind::kExact, "TestClaim: a claim of kind exact has no test");
  NUMSIM_REQUIRE(!test.contrasts.empty(), "TestClaim: no contrast, expected at least one");
  NUMSIM_REQUIRE(
      test.side == 1 || test.side == -1, "TestClaim: side is {}, expected 1 or -1", test.side);
  if (test.kind == ClaimKind::kDivergence) {
    NUMSIM_REQUIRE(test.contrasts.size() == 1 && test.contrasts[0].size() == 1,
                   "TestClaim: a claim of kind divergence is about one arm");
    NUMSIM_REQUIRE(test.margin > 0 && test.margin < 1,
                   "TestClaim: margin is {}, expected a share between 0 and 1",
                   test.margin);
    return;
  }
  for (const Contrast& contrast : test.contrasts) CheckContrast(contrast);
  if (test.kind == ClaimKind::kRatio) return CheckRatio(test);
  if (!test.control.empty()) {
    NUMSIM_REQUIRE(test.kind == ClaimKind::kEquivalence,
                   "TestClaim: only a claim of kind equivalence has a control");
    CheckContrast(test.control);
  }
  NUMSIM_REQUIRE(
      std::isfinite(test.margin) && (test.margin >= 0 || test.kind == ClaimKind::kDifference),
      "TestClaim: margin is {}, expected a finite number, below 0 only for a difference",
      test.margin);
  NUMSIM_REQUIRE(test.kind != ClaimKind::kEquivalence || test.margin > 0,
                 "TestClaim: the margin of an equivalence is 0, expected more");
  NUMSIM_REQUIRE(test.kind != ClaimKind::kOrder || test.side == 1,
                 "TestClaim: the side of an order is -1, expected 1");
  NUMSIM_REQUIRE(test.diverged != Diverged::kAsValue || std::isfinite(test.diverged_value),
                 "TestClaim: a diverged run counts as {}, expected a finite value",
                 test.diverged_value);
}

void CheckTable(const OutcomeTable& table) {
  NUMSIM_REQUIRE(table.seeds >= 0, "TestClaim: {} seeds, expected at least 0", table.seeds);
  RequireSize(table.values.size(),
              table.arms.size() * static_cast<size_t>(table.seeds),
              "TestClaim",
              "values");
}

void CheckLevel(const TestLevel& level) {
  NUMSIM_REQUIRE(level.alpha > 0 && level.alpha < 0.5,
                 "TestClaim: alpha is {}, expected between 0 and 0.5",
                 level.alpha);
  NUMSIM_REQUIRE(level.looks >= 1 && level.primary >= 1,
                 "TestClaim: {} looks and {} primary claims, expected at least 1",
                 level.looks,
                 level.primary);
}

}  // namespace numsim::experiments
