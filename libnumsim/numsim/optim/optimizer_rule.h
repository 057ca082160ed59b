// What an optimiser does with one parameter tensor: the states that it keeps and the direction that
// it makes of a gradient. The loop around it (optimizer_tensor.h) stores the states, counts steps
// and moves the weights. docs/adding-an-optimizer.md shows how to write a rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/models/parameter.h"
#include "numsim/optim/optimizer_config.h"

namespace numsim {

// Decides how a state is stored, and under which name its bytes and losses are reported.
enum class StateRole : uint8_t {
  kFirstMoment,   // as OptimizerConfig::m
  kSecondMoment,  // as OptimizerConfig::v; values >= 0
  kOther,         // in float32
};

// Numbers that a rule keeps for its tensor from step to step; zeros at first.
struct StateSpec {
  std::string name;  // "m" is "PARAMETER/m" in checkpoints
  size_t size = 0;
  StateRole role = StateRole::kFirstMoment;
};

// The steps that a tensor has taken, and beta1 and beta2 (as float32) to that power, by products.
struct StepCount {
  uint64_t steps = 0;
  double power1 = 1, power2 = 1;
};

// A step of one tensor.
struct RuleStep {
  StepCount before, now;  // without and with this step
  MatrixSpan<const float> gradient, weights;
  float factor = 1;        // of the gradient: takes out the loss scale and clips
  float weight_decay = 0;  // 0 where the tensor does not decay; the loop applies it
  // The states in the order of States(), to be brought to this step.
  std::span<const std::span<float>> states;
  // Row by row; to be filled with what the weights shall move in, e.g. minus the gradient.
  std::span<float> direction;
  // Working memory that all tensors share; a rule may resize it.
  std::vector<float>& scratch;
  // Whether the direction is made of states as they come back from storage, and that differs.
  bool from_stored = false;
  // Stores the new states and, with from_stored, loads them back. A rule whose direction is made of
  // new states calls it in between, once; the others leave storing to the loop.
  FunctionRef<void()> store;
};

// Sums over a direction and what it was made of.
struct DirectionSums {
  double ratio_square = 0;  // of the ratios whose root mean square is TensorStep::rms; 0: has none
  double update_square = 0;
  uint32_t max_update = 0;  // bits of the largest magnitude, so that NaN is greatest

  DirectionSums& operator+=(const DirectionSums& other);
};

class OptimizerRule {
 public:
  virtual ~OptimizerRule() = default;

  // The states in the order of checkpoints, the same at every call. Names differ.
  virtual std::vector<StateSpec> States() const = 0;

  // Brings the states to step.now, fills the direction and returns SumsOf(direction), with
  // ratio_square where the rule has one. Bits must not depend on threads.
  virtual DirectionSums Step(const RuleStep& step) = 0;
};

// Of a direction, or of a block of it; `ratio_square` stays 0.
DirectionSums SumsOf(std::span<const float> direction);

// Whether the role is that of matrices and embeddings, as filters of the configuration have it.
bool IsMatrix(ParameterRole role);

}  // namespace numsim
