// Rules that take each element by itself: one pass over the tensor, on all threads, in blocks that
// stay in the first-level cache.
#pragma once

#include <cstddef>

#include "numsim/base/parallel.h"
#include "numsim/optim/optimizer_rule.h"

namespace numsim {

// At most kSumBlock consecutive elements of a tensor on their way through a step.
struct RuleBlock {
  const RuleStep& step;
  size_t begin, count;
  const float* gradient;  // times step.factor

  float* State(size_t i) const { return step.states[i].data() + begin; }
  const float* Weights() const { return step.weights.data + begin; }
  float* Direction() const { return step.direction.data() + begin; }
};

// Works on one block and returns its part of DirectionSums::ratio_square.
using BlockFunction = FunctionRef<double(const RuleBlock&)>;

// The step of a rule whose direction is made of the old states: `body` fills in the direction and
// the new states.
DirectionSums StepInBlocks(const RuleStep& step, BlockFunction body);

// The step of a rule whose direction is made of the new states: `advance` fills in these, `direct`
// the direction. One pass does both, but for step.from_stored.
DirectionSums StepInBlocks(const RuleStep& step, BlockFunction advance, BlockFunction direct);

}  // namespace numsim
