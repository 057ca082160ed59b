// One parameter of an optimiser: its rule, its states, its step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numsim/optim/internal/optimizer_stores.h"
#include "numsim/optim/optimizer.h"
#include "numsim/optim/optimizer_directions.h"
#include "numsim/optim/optimizer_rule.h"
#include "numsim/optim/optimizer_state.h"

namespace numsim {

// What a step is, beside the gradients.
struct OptimizerInputs {
  float factor = 1;  // of the gradients: takes out the loss scale and clips
  double learning_rate = 0;
  uint64_t step = 0;
  bool measure = false;
  uint64_t moment_seed = 0, update_seed = 0;  // of random draws
};

// Memory that tensors use one after another.
struct OptimizerScratch {
  StateScratch states;
  std::vector<float> rule;
};

class OptimizerTensor {
 public:
  // `number` tells tensors apart in their random draws; < kMaxTensors. Both must live as long.
  // Rounds the parameter to the format of the weights.
  OptimizerTensor(const OptimizerConfig& config, Parameter<float>& parameter, size_t number);
  static constexpr size_t kMaxTensors = size_t{1} << 20;

  size_t Elements() const { return parameter_->Elements(); }
  std::span<const float> Gradient() const { return parameter_->gradient.View().Span(); }

  // Makes the scratch large enough for the states.
  void Reserve(OptimizerScratch& scratch) const { states_.Reserve(scratch.states); }

  // The first half of a step: new states, and the direction, of Elements(). Fills in the report
  // but for rms and weights. Returns the sum of the squares of which rms is the root mean.
  double MakeDirection(const OptimizerInputs& inputs,
                       OptimizerScratch& scratch,
                       std::span<float> direction,
                       TensorStep& report);
  // The second half: the weights take the step, clipped where `rms` is large and the optimiser does
  // that.
  void TakeStep(const OptimizerInputs& inputs,
                double rms,
                std::span<const float> direction,
                TensorStep& report);

  // In bytes, not in bytes a parameter.
  Optimizer::Bytes StoredBytes() const;
  void Save(std::vector<NamedBytes>& state) const;
  void Restore(StateReader& state);

 private:
  std::string NameOf(const char* piece) const;
  uint64_t StreamOf(uint64_t step) const { return step * kMaxTensors + number_; }

  const OptimizerConfig* config_;
  Parameter<float>* parameter_;
  size_t number_;
  bool decays_;
  // Members, not locals of MakeDirection: g++ 12 takes float64 -> float32 -> float64 of two
  // neighbours for nothing at all when it packs them into a vector (-ftree-slp-vectorize).
  float beta1_, beta2_;
  std::unique_ptr<OptimizerRule> rule_;
  StateStores states_;
  UpdateState update_;
  StepCount count_;
};

}  // namespace numsim
