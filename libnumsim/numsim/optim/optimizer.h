// Optimisers over all parameters of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "numsim/models/parameter.h"
#include "numsim/moments/moment_store.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/optim/optimizer_config.h"
#include "numsim/optim/optimizer_state.h"

namespace numsim {

// What a step did to one tensor.
struct TensorStep {
  bool skipped = false;  // its gradient is not finite: nothing moved, moments stay
  // Unscaled, before clipping; infinity where an element is not finite or the norm is not below
  // 2^127: such a gradient counts as not finite.
  double gradient_norm = 0;
  // sqrt(mean(g^2 / max(u, epsilon^2))) of [SwitchBack], of Adam's kinds, as `stable` has it.
  // AdamW: u is v with its bias corrected, which is what Algorithm 2 calls u.
  double rms = 0;
  double update_rms = 0;  // root mean square of the direction, before weight decay
  double max_update = 0;  // its largest magnitude
  MomentLoss m, v;        // where measured
  UpdateOutcome weights;
};

struct OptimizerStep {
  bool skipped = false;  // by the loss scaler: nothing moved
  bool finite = true;    // all gradients
  // Unscaled, before clipping: of all parameters, but for those that LossScaling::kTensor skips.
  double gradient_norm = 0;
  double clip_factor = 1;
  double learning_rate = 0;
  double loss_scale = 1;            // of this step
  std::vector<TensorStep> tensors;  // as the parameters
};

class OptimizerTensor;  // a parameter with its states (optimizer_tensor.h)
struct OptimizerInputs;
struct OptimizerScratch;

class Optimizer {
 public:
  // Rounds the parameters to the format of the weights. They must live as long. Throws Error as
  // CheckOptimizerConfig and CheckLossScalerConfig do, and for parameters on a device.
  Optimizer(const OptimizerConfig& config,
            const LossScalerConfig& scaler,
            ParameterList<float>& parameters,
            uint64_t seed);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // The factor for the next backward pass.
  double LossScale() const { return scaler_.Scale(); }

  // Takes step `step` (0, 1, ...) with the gradients of the parameters, which are those of
  // LossScale() times the loss, at that learning rate (finite, >= 0). `measure`: fill in
  // MomentLoss. The result lives until the next call. Random draws are functions of (seed, step,
  // tensor). Bits do not depend on threads.
  //
  // Per tensor, with g unscaled and clipped by one factor, the rule of config.kind brings its
  // states to this step and makes a direction (optimizer_kinds.h; docs/optimizers.md has the
  // formulas). Weights then take the step by config.update, with decoupled weight decay. A tensor
  // whose gradient is not finite is skipped (LossScaling::kTensor), or the whole step is
  // (kDynamic); with kNone nothing moves either and `finite` is false. Tensors that are skipped do
  // not count the step in t.
  const OptimizerStep& Step(double learning_rate, uint64_t step, bool measure = false);

  // Bytes a parameter: of first moments, second moments, weights with what their rule keeps, and
  // other states of the optimiser.
  struct Bytes {
    double m = 0, v = 0, weights = 0, other = 0;
    double Sum() const { return m + v + weights + other; }
  };
  Bytes StoredBytes() const;               // over all parameters
  Bytes StoredBytes(size_t tensor) const;  // of one tensor

  // All of the state but the weights: "PARAMETER/steps", the states by their names ("/m", "/v"),
  // "/update.values" and so on, as far as they are kept, and "loss_scaler".
  std::vector<NamedBytes> Save() const;
  // Throws Error naming what is missing, not known or does not fit; then the optimiser is of no
  // use.
  void Restore(const std::vector<NamedBytes>& state);

 private:
  void MeasureGradients();
  void TakeSteps(const OptimizerInputs& inputs);

  OptimizerConfig config_;
  ParameterList<float>& parameters_;
  uint64_t seed_;
  LossScaler scaler_;
  std::vector<OptimizerTensor> tensors_;
  OptimizerStep result_;
  std::unique_ptr<OptimizerScratch> scratch_;
  std::vector<float> directions_;
};

}  // namespace numsim
