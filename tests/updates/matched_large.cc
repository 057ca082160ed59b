#include "tests/updates/matched_large.h"

#include <algorithm>
#include <cmath>

#include "numsim/cast/cast.h"
#include "numsim/random/distributions.h"
#include "tests/reference/inputs.h"

namespace numsim {
namespace {

float FactorOf(LargeKind kind, size_t i, size_t n, size_t place, oracle::TestRandom& random) {
  switch (kind) {
    case LargeKind::kOneOutlier:
      return i == place ? 0x1p30f : 1.0f;
    case LargeKind::kOnlyOne:
      return i == place ? 1.0f : 0.0f;
    case LargeKind::kZeroBlocks:
      return i / (n / 16 + 1) == place % 16 ? 1.0f : 0.0f;
    case LargeKind::kTwoScales:
      return random.Below(1000) == 0 ? 0x1p20f : 0x1p-20f;
    case LargeKind::kPeriodic:
      return i % 256 == place % 256 ? 100.0f : 0.01f;
    case LargeKind::kLastIsFirst:
      return i + n / 64 >= n ? 1000.0f : 1.0f;
    case LargeKind::kManyMagnitudes:
      return std::ldexp(1.0f, static_cast<int>(random.Below(120)) - 60);
    default:
      return 1.0f;
  }
}

}  // namespace

std::string_view ToString(LargeKind kind) {
  constexpr std::array<std::string_view, kLargeKinds.size()> kNames = {"normal",
                                                                       "signs",
                                                                       "all equal",
                                                                       "one outlier",
                                                                       "only one",
                                                                       "sorted",
                                                                       "zero blocks",
                                                                       "two scales",
                                                                       "periodic",
                                                                       "last is first",
                                                                       "many magnitudes"};
  return kNames[static_cast<size_t>(kind)];
}

MatchedCase DrawLarge(const std::string& format, LargeKind kind, size_t n, uint64_t seed) {
  const bool any_code = kind == LargeKind::kManyMagnitudes;
  MatchedCase c = DrawCase(
      format, any_code ? WeightKind::kAnyCode : WeightKind::kNormal, UpdateShape::kNormal, n, seed);
  c.learning_rate = 0.01f;
  c.quantity = MatchedQuantity::kNorm;
  c.small_step = SmallStep::kOneAtRandom;
  oracle::TestRandom random(seed);
  const auto place = static_cast<size_t>(random.Below(n));
  for (size_t i = 0; i < n; ++i) c.update[i] *= FactorOf(kind, i, n, place, random);
  if (kind == LargeKind::kSigns) {
    for (float& u : c.update) u = std::copysign(1.0f, u);
  }
  if (kind == LargeKind::kAllEqual) {
    std::fill(c.weights.begin(), c.weights.end(), c.weights[0]);
    std::fill(c.update.begin(), c.update.end(), 1.0f);
  }
  if (kind == LargeKind::kSorted) {
    std::sort(c.weights.begin(), c.weights.end());
    std::sort(c.update.begin(), c.update.end());
  }
  return c;
}

}  // namespace numsim
