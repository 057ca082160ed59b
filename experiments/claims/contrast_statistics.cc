#include "experiments/claims/contrast_statistics.h"

#include <algorithm>
#include <cmath>

#include "experiments/claims/paired.h"
#include "experiments/claims/power.h"
#include "experiments/claims/student_t.h"

namespace numsim::experiments {
namespace {

// Returns the p of the hypothesis that the true value is at most `bound`, and below that of the
// opposite one. Without residuals the estimate is the truth. 1 if the standard error is unknown.
double TailAbove(const ContrastEstimate& estimate, double bound) {
  const double excess = estimate.value - bound;
  if (std::isnan(excess) || std::isnan(estimate.standard_error)) return 1;
  if (estimate.standard_error == 0) return excess > 0 ? 0 : 1;
  return StudentTail(excess / estimate.standard_error, estimate.freedom);
}

double TailBelow(const ContrastEstimate& estimate, double bound) {
  return TailAbove({-estimate.value, estimate.standard_error, estimate.freedom}, -bound);
}

struct Tails {
  double supported, contradicted;  // one-sided
};

Tails TailsOf(const ClaimTest& test, const ContrastEstimate& estimate) {
  const double m = test.margin;
  if (test.kind == ClaimKind::kEquivalence) {
    return {std::max(TailAbove(estimate, -m), TailBelow(estimate, m)),
            std::min(TailAbove(estimate, m), TailBelow(estimate, -m))};
  }
  if (test.side < 0) return {TailBelow(estimate, -m), TailAbove(estimate, -m)};
  return {TailAbove(estimate, m), TailBelow(estimate, m)};
}

// Returns the level of each one-sided test that supports a claim; half of alpha where the
// two-sided interval is meant.
double SupportLevel(const ClaimTest& test, double alpha) {
  return test.kind == ClaimKind::kEquivalence ? alpha : alpha / 2;
}

// Returns the chance to find a contrast on the claimed side (or, if `supported` is false, on the
// other) with n seeds, if the estimate is the truth.
double PowerOf(
    const ClaimTest& test, const PlannedContrast& contrast, bool supported, double level, int n) {
  const int freedom = n - 1;
  const double error = contrast.sigma / std::sqrt(static_cast<double>(n));
  const double quantile = -StudentQuantile(level, freedom);
  const double value = contrast.value, m = test.margin;
  if (test.kind == ClaimKind::kEquivalence) {
    if (supported) return PowerWithin((value + m) / error, (m - value) / error, quantile, freedom);
    return PowerBeyond((std::abs(value) - m) / error, quantile, freedom);
  }
  const double excess = test.side * value - m;
  return PowerBeyond((supported ? excess : -excess) / error, quantile, freedom);
}

// Returns whether the estimate of a contrast is on the claimed side.
bool OnClaimedSide(const ClaimTest& test, double value) {
  return test.kind == ClaimKind::kEquivalence ? std::abs(value) < test.margin
                                              : test.side * value > test.margin;
}

bool OnMargin(const ClaimTest& test, double value) {
  return (test.kind == ClaimKind::kEquivalence ? std::abs(value) : test.side * value) ==
         test.margin;
}

double PowerOfAll(const ClaimTest& test,
                  const std::vector<PlannedContrast>& contrasts,
                  double alpha,
                  int n) {
  const auto on_claimed_side = [&](const PlannedContrast& contrast) {
    return OnClaimedSide(test, contrast.value);
  };
  if (std::all_of(contrasts.begin(), contrasts.end(), on_claimed_side)) {
    double failures = 0;
    for (const PlannedContrast& contrast : contrasts) {
      failures += 1 - PowerOf(test, contrast, true, SupportLevel(test, alpha), n);
    }
    return 1 - failures;
  }
  double best = 0;
  const double level = alpha / 2 / static_cast<double>(contrasts.size());
  for (const PlannedContrast& contrast : contrasts) {
    best = std::max(best, PowerOf(test, contrast, false, level, n));
  }
  return best;
}

ContrastResult WithInterval(const ContrastEstimate& e, double level) {
  const double half = e.standard_error == 0 || e.freedom < 1
                          ? e.standard_error
                          : -StudentQuantile(level, e.freedom) * e.standard_error;
  return {e.value, e.value - half, e.value + half, e.standard_error, e.freedom};
}

}  // namespace

int SeedsToDecide(const ClaimTest& test,
                  const std::vector<PlannedContrast>& contrasts,
                  double alpha) {
  bool exact = false, decided = true;
  for (const PlannedContrast& contrast : contrasts) {
    if (std::isnan(contrast.sigma) || std::isnan(contrast.value)) return 0;
    exact |= contrast.sigma == 0;
    decided &= !OnMargin(test, contrast.value);
  }
  // Without residuals two seeds show what all seeds show; only a tie is never broken.
  if (exact) return decided ? 2 : kMostSeeds + 1;
  return LeastSeeds([&](int n) { return PowerOfAll(test, contrasts, alpha, n); });
}

void TestContrasts(const ClaimTest& test,
                   std::span<const double> outcomes,
                   int seeds,
                   const std::vector<std::vector<double>>& weights,
                   double alpha,
                   double planned_alpha,
                   ClaimResult& result) {
  const double level = SupportLevel(test, alpha);
  result.confidence = 1 - 2 * level;
  std::vector<PlannedContrast> planned;
  double supported = 0, contradicted = 1;
  for (const std::vector<double>& row : weights) {
    const ContrastEstimate estimate = EstimateContrast(outcomes, seeds, row);
    result.contrasts.push_back(WithInterval(estimate, level));
    planned.push_back({estimate.value, estimate.standard_error * std::sqrt(estimate.freedom + 1.)});
    const Tails tails = TailsOf(test, estimate);
    supported = std::max(supported, tails.supported);
    contradicted = std::min(contradicted, tails.contradicted);
  }
  const double sides = alpha / level;  // 2 where the level is that of each end of an interval
  result.p_supported = std::min(1., sides * supported);
  result.p_contradicted = std::min(1., 2 * static_cast<double>(weights.size()) * contradicted);
  if (planned_alpha > 0) result.seeds_to_decide = SeedsToDecide(test, planned, planned_alpha);
}

}  // namespace numsim::experiments
