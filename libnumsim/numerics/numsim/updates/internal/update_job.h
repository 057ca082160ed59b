// A step of an update rule on the host, checked and prepared, and what a rule makes of it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "numsim/rounding/encode_plan.h"
#include "numsim/updates/internal/update_groups.h"
#include "numsim/updates/internal/update_scan.h"
#include "numsim/updates/step_sums.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

class UpdateMethod;

// A checked and prepared step: weights, update and state are finite.
struct UpdateJob {
  const UpdateRule* rule = nullptr;
  const UpdateMethod* method = nullptr;
  EncodePlan plan;      // Q
  EncodePlan own_plan;  // the kind's own rounding, see OwnPlan
  float largest = 0;    // largest finite value of the format
  std::span<const float> weights;
  std::span<const float> update;  // weight decay included
  float absmax_weight = 0, absmax_update = 0;
  float learning_rate = 0;  // > 0
  RandomStream random;
  UpdateState* state = nullptr;
  std::span<float> new_weights;  // may be `weights`

  bool InPlace() const { return new_weights.data() == weights.data(); }
  // True if the new weights overlap neither the weights nor the update.
  bool WritesApart() const {
    const auto apart = [&](std::span<const float> x) {
      const std::less_equal<const float*> ordered;
      return ordered(x.data() + x.size(), new_weights.data()) ||
             ordered(new_weights.data() + new_weights.size(), x.data());
    };
    return apart(weights) && apart(update);
  }
  void SetAbsmax(const Scan& scan) {
    absmax_weight = std::bit_cast<float>(scan.weights);
    absmax_update = std::bit_cast<float>(scan.update);
  }
  // Returns the limit for CountBeyond: the largest finite value, or infinity if no |w + alpha u|
  // can be above it (all roundings are monotonic).
  double LimitAt(float alpha) const {
    const double bound = static_cast<double>(absmax_weight) +
                         static_cast<double>(alpha) * static_cast<double>(absmax_update);
    const double limit = static_cast<double>(largest);
    return bound > limit ? limit : std::numeric_limits<double>::infinity();
  }
  // Returns the number of weights of the block with |w + lr u| above the largest finite value.
  uint64_t CountWantedBeyond(ElementRange block) const {
    return CountBeyond(weights.data() + block.begin,
                       update.data() + block.begin,
                       static_cast<double>(learning_rate),
                       LimitAt(learning_rate),
                       block.count);
  }
};

// Returns the job of a step without its arrays, which are those of a place.
UpdateJob MakeUpdateJob(const UpdateRule& rule, const WeightUpdate& step, RandomStream random);

struct UpdateGroup {
  size_t index = 0;
  ElementRange range;
  double update_square = 0;  // SquaredSum of the group's update
};

// The result of a group's step. In `outcome` only the fields that do not follow from the sums are
// set: status, alpha, matched, matched_target, passes.
struct GroupResult {
  UpdateOutcome outcome;
  StepSums sums;
};

// Takes the step of all groups. Requires finite numbers and an update that is not all zero;
// update_square is its SquaredSum. `group_outcomes`, if not null, has one element per group.
UpdateOutcome TakeStep(const UpdateJob& job,
                       const ElementGroups& groups,
                       double update_square,
                       std::vector<UpdateOutcome>* group_outcomes);

// A scan and the sums of the step.
struct ScannedStep {
  Scan scan;
  StepSums sums;

  ScannedStep& operator+=(const ScannedStep& other) {
    scan += other.scan;
    sums += other.sums;
    return *this;
  }
};

// Makes the new weights of the range equal to the old ones, bit for bit.
void KeepWeights(const UpdateJob& job, ElementRange range);

// Writes fl32(fl64(u - weight_decay W)) of each element, with W as WeightUpdate::weight_decay
// defines it. Requires `decayed` to be as long as the update.
void DecayedUpdate(const UpdateRule& rule,
                   const WeightUpdate& step,
                   const UpdateState& state,
                   std::span<float> decayed);

}  // namespace numsim
