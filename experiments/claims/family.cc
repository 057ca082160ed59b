#include "experiments/claims/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "numsim/base/elementary.h"
#include "numsim/base/require.h"

namespace numsim::experiments {
namespace {

constexpr int kMostLooks = 4;

bool IsTested(const ClaimResult& result) {
  return result.verdict == Verdict::kSupported || result.verdict == Verdict::kContradicted ||
         result.verdict == Verdict::kInconclusive;
}

void Judge(ClaimResult& result, double adjusted) {
  const double alone = std::min(result.p_supported, result.p_contradicted);
  result.p = adjusted;
  if (adjusted <= result.alpha) {
    result.verdict = alone == result.p_supported ? Verdict::kSupported : Verdict::kContradicted;
    result.reason.clear();
  } else if (alone <= result.alpha) {
    result.verdict = Verdict::kInconclusive;
    result.reason =
        fmt::format("p = {:.2g} after Holm's correction, above {:.2g}", adjusted, result.alpha);
  }
}

}  // namespace

std::vector<double> HolmAdjusted(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    least = std::max(least, static_cast<double>(p.size() - i) * p[order[i]]);
    adjusted[order[i]] = std::min(1., least);
  }
  return adjusted;
}

void JudgeTogether(std::span<ClaimResult> primary, size_t left_out) {
  std::vector<ClaimResult*> tested;
  std::vector<double> p;
  for (ClaimResult& result : primary) {
    if (!IsTested(result)) continue;
    tested.push_back(&result);
    p.push_back(std::min(result.p_supported, result.p_contradicted));
    NUMSIM_REQUIRE(result.alpha == tested[0]->alpha,
                   "JudgeTogether: claims tested at alpha {} and {}, expected one level",
                   tested[0]->alpha,
                   result.alpha);
  }
  p.resize(p.size() + left_out, 1.0);
  const std::vector<double> adjusted = HolmAdjusted(p);
  for (size_t i = 0; i < tested.size(); ++i) Judge(*tested[i], adjusted[i]);
}

Looks DefaultLooks(int first, int most) {
  NUMSIM_REQUIRE(first >= 2 && first <= most,
                 "DefaultLooks: {} to {} seeds, expected an ascending range from at least 2",
                 first,
                 most);
  int looks = 1;
  for (double seeds = first; seeds < most && looks < kMostLooks; seeds *= 2) ++looks;
  const double ratio = Log(static_cast<double>(most) / first);
  Looks schedule;
  for (int i = 0; i < looks; ++i) {
    // From the logarithm by base/elementary.h, whose bits are the same on every machine.
    const double seeds = i == 0           ? first
                         : i == looks - 1 ? most
                                          : first * Exp(ratio * i / (looks - 1));
    schedule.seeds.push_back(static_cast<int>(seeds + 0.5));
  }
  return schedule;
}

}  // namespace numsim::experiments
