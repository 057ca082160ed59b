// The part of an optimiser that handles one parameter tensor: its states, and how it computes a
// direction from a gradient. The loop around it (optimizer_tensor.h) stores the states, counts
// steps and updates the weights. docs/adding-an-optimizer.md shows how to write a rule.
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

// Determines how a state is stored, and under which name its bytes and losses are reported.
enum class StateRole : uint8_t {
  kFirstMoment,   // stored as OptimizerConfig::m
  kSecondMoment,  // stored as OptimizerConfig::v; values >= 0
  kOther,         // stored in float32
};

// An array that a rule keeps for its tensor from step to step, initially zeros.
struct StateSpec {
  std::string name;  // "m" becomes "PARAMETER/m" in checkpoints
  size_t size = 0;
  StateRole role = StateRole::kFirstMoment;
};

// The number of steps that a tensor has taken, and beta1 and beta2 (as float32) to that power,
// computed by repeated multiplication.
struct StepCount {
  uint64_t steps = 0;
  double power1 = 1, power2 = 1;
};

// The inputs and outputs of a rule for one step of one tensor.
struct RuleStep {
  StepCount before, now;  // without and with this step
  MatrixSpan<const float> gradient, weights;
  float factor = 1;        // multiplies the gradient: takes out the loss scale and clips
  float weight_decay = 0;  // 0 if the tensor does not decay; the loop applies it
  // The states in the order of States(). The rule replaces the old values by the new ones.
  std::span<const std::span<float>> states;
  // Output, row by row: the direction in which the weights move, e.g. minus the gradient.
  std::span<float> direction;
  // Working memory shared by all tensors; a rule may resize it.
  std::vector<float>& scratch;
  // True if the direction is to be computed from states read back from storage, and storage is not
  // exact.
  bool from_stored = false;
  // Stores the new states and, if from_stored, loads them back. A rule that computes its direction
  // from the new states calls it once, after the states and before the direction; other rules leave
  // storing to the loop.
  FunctionRef<void()> store;
};

// Sums over a direction and over the ratios behind RMS.
struct DirectionSums {
  double ratio_square = 0;  // sum of squares for TensorStep::rms; 0 if the rule has no RMS
  double update_square = 0;
  uint32_t max_update = 0;  // bits of the largest magnitude; a NaN compares greatest

  DirectionSums& operator+=(const DirectionSums& other);
};

class OptimizerRule {
 public:
  virtual ~OptimizerRule() = default;

  // Returns the states in the order of checkpoints; the same at every call, with distinct names.
  virtual std::vector<StateSpec> States() const = 0;

  // Updates the states to step.now, fills step.direction and returns SumsOf(direction), with
  // ratio_square set if the rule has an RMS. Results must not depend on the number of threads.
  virtual DirectionSums Step(const RuleStep& step) = 0;
};

// Returns the sums over a direction, or over a block of it, with `ratio_square` 0.
DirectionSums SumsOf(std::span<const float> direction);

// Returns true for matrices and embeddings: the parameters that the filter `matrices` of the
// configuration selects.
bool IsMatrix(ParameterRole role);

}  // namespace numsim
