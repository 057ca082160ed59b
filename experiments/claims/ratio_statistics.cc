#include "experiments/claims/ratio_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "experiments/claims/beta.h"
#include "experiments/claims/contrast_statistics.h"
#include "experiments/claims/student_t.h"
#include "numsim/base/require.h"

namespace numsim::experiments {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

struct Moments {
  double mean = 0, variance = 0;  // of one value
  int size = 0;
};

// Returns the moments of a x - b y over seeds.
Moments MomentsOf(const PairedCounts& counts, double a, double b) {
  Moments of{.size = static_cast<int>(counts.first.size())};
  std::vector<double> values;
  for (int i = 0; i < of.size; ++i) values.push_back(a * counts.first[i] - b * counts.second[i]);
  of.mean = Sum(values) / of.size;
  for (const double value : values) {
    of.variance += (value - of.mean) * (value - of.mean) / (of.size - 1);
  }
  return of;
}

// Returns the p of the hypothesis that the true mean is at least 0.
double TailBelowZero(const Moments& of) {
  if (of.variance == 0) return of.mean < 0 ? 0 : 1;
  return StudentTail(-of.mean / std::sqrt(of.variance / of.size), of.size - 1);
}

PairedCounts Swapped(const PairedCounts& counts) { return {counts.second, counts.first}; }

// Returns the least ratio of which RatioBelow is at most `level`; infinity if there is none. By
// bisection of the first arm's share of the events.
double UpperEnd(const PairedCounts& counts, double level) {
  if (RatioBelow(counts, kInfinity) > level) return kInfinity;
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double share = (low + high) / 2;
    (RatioBelow(counts, share / (1 - share)) > level ? low : high) = share;
  }
  return high / (1 - high);
}

ContrastResult RatioWithInterval(const PairedCounts& counts, double level) {
  const double first = Sum(counts.first), second = Sum(counts.second);
  const int freedom = static_cast<int>(counts.first.size()) - 1;
  ContrastResult ratio{first / second, kNaN, kNaN, kNaN, std::max(0, freedom)};
  if (freedom < 1) return ratio;
  ratio.low = 1 / UpperEnd(Swapped(counts), level);
  ratio.high = UpperEnd(counts, level);
  return ratio;
}

void CheckCounts(const PairedCounts& counts) {
  for (const std::vector<double>& arm : {counts.first, counts.second}) {
    for (const double count : arm) {
      NUMSIM_REQUIRE(count >= 0 && count == std::floor(count),
                     "TestClaim: an outcome of a ratio is {}, expected a whole number from 0 on",
                     count);
    }
  }
}

}  // namespace

double RatioBelow(const PairedCounts& counts, double ratio) {
  if (counts.first.size() < 2) return 1;
  const double first = Sum(counts.first), second = Sum(counts.second);
  const double others = std::isinf(ratio) ? 0 : 1 / (1 + ratio);  // the second arm's share
  const double exact = BinomialTail(
      static_cast<int>(second), static_cast<int>(first + second), std::min(1., others));
  const bool infinite = std::isinf(ratio);
  const Moments at = MomentsOf(counts, infinite ? 0 : 1, infinite ? 1 : ratio);
  return std::max({exact, TailBelowZero(at), TailBelowZero(MomentsOf(counts, 0, 1))});
}

double RatioAbove(const PairedCounts& counts, double ratio) {
  return RatioBelow(Swapped(counts), 1 / ratio);
}

void TestRatios(const ClaimTest& test,
                const std::vector<PairedCounts>& counts,
                double alpha,
                double planned_alpha,
                ClaimResult& result) {
  result.confidence = 1 - alpha;
  std::vector<PlannedContrast> planned;
  double supported = 0, contradicted = 1;
  for (const PairedCounts& each : counts) {
    CheckCounts(each);
    result.contrasts.push_back(RatioWithInterval(each, alpha / 2));
    const double below = RatioBelow(each, test.margin), above = RatioAbove(each, test.margin);
    supported = std::max(supported, test.side < 0 ? below : above);
    contradicted = std::min(contradicted, test.side < 0 ? above : below);
    const Moments at = MomentsOf(each, 1, test.margin);
    const double poisson =
        (Sum(each.first) + test.margin * test.margin * Sum(each.second)) / at.size;
    const bool known = at.size >= 2 && poisson > 0;
    planned.push_back({at.mean, known ? std::sqrt(std::max(at.variance, poisson)) : kNaN});
  }
  result.p_supported = std::min(1., 2 * supported);
  result.p_contradicted = std::min(1., 2 * static_cast<double>(counts.size()) * contradicted);
  if (planned_alpha > 0) {
    const ClaimTest difference{.kind = ClaimKind::kDifference, .side = test.side, .margin = 0};
    result.seeds_to_decide = SeedsToDecide(difference, planned, planned_alpha);
  }
}

}  // namespace numsim::experiments
