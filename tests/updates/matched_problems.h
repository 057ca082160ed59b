// Weights and updates for tests of the matched step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "numsim/rounding/encode_plan.h"
#include "numsim/updates/internal/matched_step.h"
#include "tests/reference/formats.h"

namespace numsim {

enum class WeightKind { kNormal, kAnyCode, kZero, kLargest, kSubnormal, kAllEqual, kMixed };
inline constexpr int kWeightKinds = 7;

enum class UpdateShape {
  kNormal,
  kSigns,  // +-1: thresholds coincide
  kSameAsWeight,
  kHeavyTail,
  kMostlyZero,
  kTiny,  // about 1e-30
  kHuge,  // about 1e30
  kGaps,  // powers of two near the gaps of the weights: ties of thresholds and of sums
};
inline constexpr int kUpdateShapes = 8;

struct MatchedCase {
  std::string format;
  EncodePlan plan;  // nearest even, saturating
  std::vector<float> weights, update;
  float learning_rate = 0;
  MatchedQuantity quantity = MatchedQuantity::kNorm;
  SmallStep small_step = SmallStep::kOneAtRandom;
  RandomStream random = {.seed = 1, .stream = 2};
  uint64_t first_index = 0;

  // update_square is the sum in ascending order.
  MatchedProblem Problem() const;
};

EncodePlan MatchedPlan(const std::string& format);

// All formats except those with a lowest number that has no opposite, which the matched rules refuse.
std::vector<oracle::Format> SymmetricFormats();

// `n` weights and updates of those kinds, the same for the same seed; some update is not zero. All
// settings besides are drawn too: the learning rate from 1e-12 to 10.
MatchedCase DrawCase(
    const std::string& format, WeightKind weights, UpdateShape update, size_t n, uint64_t seed);

void PrintTo(const MatchedCase& c, std::ostream* os);
std::string Describe(const MatchedCase& c);

}  // namespace numsim
