// One parameter of an optimiser: its rule, its states and its steps.
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

// Returns true if parameters of that role decay.
bool Decays(const OptimizerConfig& config, ParameterRole role);

// Returns infinity for a value that is not finite, so that telemetry never has a NaN whose text
// depends on the machine.
double Known(double value);

// Returns the steps of the piece of that name. Throws Error naming it if it is missing or invalid.
StepCount ReadStepCount(const std::string& name, StateReader& state);

// The inputs of a step other than the gradients.
struct OptimizerInputs {
  float factor = 1;  // multiplies the gradients: takes out the loss scale and clips
  double learning_rate = 0;
  uint64_t step = 0;
  bool measure = false;
  uint64_t moment_seed = 0, update_seed = 0;  // seeds of the random bits
};

// Working memory that the tensors use one after another.
struct OptimizerScratch {
  StateScratch states;
  std::vector<float> rule;
};

class OptimizerTensor {
 public:
  // Rounds the parameter to the weight format. `number` < kMaxTensors selects the tensor's random
  // bits and must differ between tensors. The configuration and the parameter must outlive this
  // object.
  OptimizerTensor(const OptimizerConfig& config, Parameter<float>& parameter, size_t number);
  static constexpr size_t kMaxTensors = size_t{1} << 20;

  size_t Elements() const { return parameter_->Elements(); }
  std::span<const float> Gradient() const { return parameter_->gradient.View().Span(); }

  // Grows the scratch memory to the size that the states need.
  void Reserve(OptimizerScratch& scratch) const { states_.Reserve(scratch.states); }

  // The first half of a step: computes the new states and the direction, which has Elements()
  // elements. Fills in `report` except rms and weights. Returns the sum of squares from which the
  // caller computes rms.
  double MakeDirection(const OptimizerInputs& inputs,
                       OptimizerScratch& scratch,
                       std::span<float> direction,
                       TensorStep& report);
  // The second half: updates the weights. Clips the step by `rms` if the optimiser does so
  // (OptimizerKindRow::clips_by_rms).
  void TakeStep(const OptimizerInputs& inputs,
                double rms,
                std::span<const float> direction,
                TensorStep& report);

  // Returns totals in bytes, not bytes per parameter.
  Optimizer::Bytes StoredBytes() const;
  void Save(std::vector<NamedBytes>& state) const;
  void Restore(StateReader& state);
  // See Optimizer::GoOnFrom. `seed` is that of the random bits.
  void GoOnFrom(const OptimizerConfig& former, StateReader& state, uint64_t step, uint64_t seed);

 private:
  std::string NameOf(const char* piece) const;
  void RestoreUpdate(StateReader& state);
  uint64_t StreamOf(uint64_t step) const { return step * kMaxTensors + number_; }

  const OptimizerConfig* config_;
  Parameter<float>* parameter_;
  size_t number_;
  bool decays_;
  // Members, not locals of MakeDirection: when g++ 12 packs two neighbours into a vector
  // (-ftree-slp-vectorize), it drops their conversion float64 -> float32 -> float64.
  float beta1_, beta2_;
  std::unique_ptr<OptimizerRule> rule_;
  StateStores states_;
  UpdateState update_;
  StepCount count_;
};

}  // namespace numsim
