#include "experiments/claims/share_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/claims/beta.h"
#include "experiments/claims/power.h"

namespace numsim::experiments {
namespace {

// The probabilities of at least and of at most that many successes.
double AtLeast(int count, int trials, double success) {
  return BinomialTail(count, trials, success);
}
double AtMost(int count, int trials, double success) {
  return BinomialTail(trials - count, trials, 1 - success);
}

// Returns the success rate at which `tail`, a function that rises with it, equals `level`.
template <typename Tail>
double RateAt(double level, Tail tail) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (tail(middle) < level ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Returns the chance that n runs decide the claim at that one-sided level, if `observed` is the
// true share: that they show it to be on the observed side of `share`.
double PowerOfShare(double share, double observed, double level, int n) {
  if (observed < share) return PowerOfShare(1 - share, 1 - observed, level, n);
  int low = 0, high = n + 1;  // the least count that is significant lies in (low, high]
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (AtLeast(middle, n, share) > level ? low : high) = middle;
  }
  return AtLeast(high, n, observed);
}

// The power is not monotone in n, since counts are whole numbers: each n is tried.
int SeedsForShare(double share, double observed, double alpha) {
  if (observed == share) return kMostSeeds + 1;
  int n = 1;
  while (n <= kMostSeeds && PowerOfShare(share, observed, alpha / 2, n) < kPlannedPower) ++n;
  return n;
}

}  // namespace

void TestShare(
    double share, int diverged, int runs, double alpha, double planned_alpha, ClaimResult& result) {
  const double observed = diverged / static_cast<double>(runs);
  ContrastResult interval = {observed, 0, 1, std::numeric_limits<double>::quiet_NaN(), 0};
  if (diverged > 0) {
    interval.low = RateAt(alpha / 2, [&](double rate) { return AtLeast(diverged, runs, rate); });
  }
  if (diverged < runs) {
    interval.high =
        1 - RateAt(alpha / 2, [&](double rate) { return AtMost(diverged, runs, 1 - rate); });
  }
  result.contrasts = {interval};
  result.confidence = 1 - alpha;
  result.p_supported = std::min(1., 2 * AtLeast(diverged, runs, share));
  result.p_contradicted = std::min(1., 2 * AtMost(diverged, runs, share));
  if (planned_alpha > 0) result.seeds_to_decide = SeedsForShare(share, observed, planned_alpha);
}

}  // namespace numsim::experiments
