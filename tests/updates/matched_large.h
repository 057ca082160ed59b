// Large arrays whose thresholds a sample may misjudge.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/updates/matched_problems.h"

namespace numsim {

enum class LargeKind {
  kNormal,
  kSigns,           // +-1 on normal weights
  kAllEqual,        // one threshold
  kOneOutlier,      // one update, at some place, 2^30 times the others
  kOnlyOne,         // all others are zero
  kSorted,          // weights and updates both ascending
  kZeroBlocks,      // updates in one part of sixteen alone
  kTwoScales,       // one in a thousand has updates 2^40 times the others'
  kPeriodic,        // every 256th stands out
  kLastIsFirst,     // all that moves first lies at the end
  kManyMagnitudes,  // weights and updates over all of the format and 2^-60 .. 2^60
};
inline constexpr std::array kLargeKinds = {LargeKind::kNormal,
                                           LargeKind::kSigns,
                                           LargeKind::kAllEqual,
                                           LargeKind::kOneOutlier,
                                           LargeKind::kOnlyOne,
                                           LargeKind::kSorted,
                                           LargeKind::kZeroBlocks,
                                           LargeKind::kTwoScales,
                                           LargeKind::kPeriodic,
                                           LargeKind::kLastIsFirst,
                                           LargeKind::kManyMagnitudes};
std::string_view ToString(LargeKind kind);

// n weights and updates of that kind; norm, lr 0.01, one at random.
MatchedCase DrawLarge(const std::string& format, LargeKind kind, size_t n, uint64_t seed);

}  // namespace numsim
