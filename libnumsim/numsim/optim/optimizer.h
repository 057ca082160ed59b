// Optimisers over all parameters of a model.
#pragma once

#include <cstdint>
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

class OptimizerTensor;  // a parameter with its moments (optimizer_tensor.h)
struct OptimizerInputs;

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
  // Per tensor, with g unscaled and clipped by one factor and t the steps that it has taken, this
  // one included (fl: every operation is rounded to float32, optimizer_directions.h):
  //   AdamW   m = beta1 m + (1 - beta1) g, v likewise of g^2 with beta2; direction
  //           -(m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon), in the arithmetic of Adam
  //           (update_direction.h). Under beta2_decay the square is not corrected.
  //   StableAdamW   Algorithm 2: b1 = beta1 (1 - beta1^(t-1)) / (1 - beta1^t), b2 likewise,
  //           m = b1 m + (1 - b1) g, u = b2 u + (1 - b2) g^2; direction -m / (sqrt(u) + epsilon) at
  //           learning rate lr / max(1, RMS / threshold). What is stored is m and u, corrected as
  //           they are. Under beta2_decay b2 is the scheduled beta2.
  //   SGD     m = beta1 m + g; direction -m
  //   Lion    direction -sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g
  // Weights then take the step by config.update, with decoupled weight decay. A tensor whose
  // gradient is not finite is skipped (LossScaling::kTensor), or the whole step is (kDynamic); with
  // kNone nothing moves either and `finite` is false. Tensors that are skipped do not count the
  // step in t.
  const OptimizerStep& Step(double learning_rate, uint64_t step, bool measure = false);

  // Bytes a parameter: of m, v, of weights with what their rule keeps.
  struct Bytes {
    double m = 0, v = 0, weights = 0;
    double Sum() const { return m + v + weights; }
  };
  Bytes StoredBytes() const;               // over all parameters
  Bytes StoredBytes(size_t tensor) const;  // of one tensor

  // All of the state but the weights: "PARAMETER/m", "/v", "/steps", "/update.values" and so on, as
  // far as they are kept, and "loss_scaler".
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
  std::vector<float> m_scratch_, v_scratch_, directions_;
};

}  // namespace numsim
