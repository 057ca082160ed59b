// Steps of element-wise rules: one pass over the tensor, on all threads, in blocks that fit into
// the first-level cache.
#pragma once

#include <cstddef>

#include "numsim/base/parallel.h"
#include "numsim/optim/optimizer_rule.h"

namespace numsim {

// At most kSumBlock consecutive elements of a tensor during a step.
struct RuleBlock {
  const RuleStep& step;
  size_t begin, count;
  const float* gradient;  // times step.factor

  float* State(size_t i) const { return step.states[i].data() + begin; }
  const float* Weights() const { return step.weights.data + begin; }
  float* Direction() const { return step.direction.data() + begin; }
};

// Processes one block and returns its part of DirectionSums::ratio_square.
using BlockFunction = FunctionRef<double(const RuleBlock&)>;

// Takes the step of a rule whose direction depends on the old states: `body` computes the direction
// and the new states.
DirectionSums StepInBlocks(const RuleStep& step, BlockFunction body);

// Takes the step of a rule whose direction depends on the new states: `advance` computes the new
// states, `direct` the direction. One pass does both, unless step.from_stored needs two.
DirectionSums StepInBlocks(const RuleStep& step, BlockFunction advance, BlockFunction direct);

}  // namespace numsim
