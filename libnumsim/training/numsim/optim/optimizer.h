// Optimisers over all parameters of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/parameter.h"
#include "numsim/moments/moment_store.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/optim/optimizer_config.h"

namespace numsim {

// The effect of one step on one tensor.
struct TensorStep {
  // There is no gradient, or it is not finite: weights and moments are unchanged.
  bool skipped = false;
  // Norm without the loss scale and before clipping. Infinity if an element is not finite or the
  // norm is not below 2^127: such a gradient counts as not finite.
  double gradient_norm = 0;
  // RMS of [SwitchBack], sqrt(mean(g^2 / max(u, epsilon^2))), in the variant that
  // OptimizerConfig::stable selects; adamw and stable-adamw only, else 0. For adamw, u is v with
  // its bias corrected, as in Algorithm 2.
  double rms = 0;
  double update_rms = 0;  // root mean square of the direction, before weight decay
  double max_update = 0;  // largest magnitude in the direction
  MomentLoss m, v;        // zeros unless measured
  UpdateOutcome weights;
};

// The outcome of one step of an optimiser.
struct OptimizerStep {
  bool skipped = false;  // the loss scaler skipped the step: no weight changed
  bool finite = true;    // all gradients are finite
  // Norm of the gradients of all parameters, without the loss scale and before clipping; leaves out
  // the tensors that LossScaling::kTensor skips. Infinity if the whole step is not taken.
  double gradient_norm = 0;
  double clip_factor = 1;
  double learning_rate = 0;
  double loss_scale = 1;            // the scale of this step's gradients
  std::vector<TensorStep> tensors;  // in the order of the parameters
};

// Returns true if both keep weights in the same format and take steps by the same rule.
bool HaveSameWeights(const OptimizerConfig& a, const OptimizerConfig& b);

// One piece of state for a checkpoint, in the machine's byte order.
struct NamedBytes {
  std::string name;
  std::vector<std::byte> bytes;
};

class OptimizerAtPlace;  // the optimiser of a device (optimizer_at_place.h)
class OptimizerTensor;   // a parameter with its optimiser states (optimizer_tensor.h)
struct OptimizerInputs;
struct OptimizerScratch;

// An optimiser over all parameters of a model.
class Optimizer {
 public:
  // Rounds the parameters to the weight format. The parameters must outlive the optimiser. Throws
  // Error as CheckOptimizerConfig and CheckLossScalerConfig do, and for parameters on a device if
  // the device has no form of the optimiser, the moments or the update rule, which it names.
  //
  // Steps run where the parameters are, with the same bits. The memory of their values and gradients
  // may be that of somebody else (Buffer::Borrow), and may be other memory at each step.
  Optimizer(const OptimizerConfig& config,
            const LossScalerConfig& scaler,
            ParameterList<float>& parameters,
            uint64_t seed);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Returns the loss scale for the next backward pass. A device waits for it if it is dynamic.
  double LossScale() const;

  // Takes step `step` (0, 1, ...) with the gradients stored in the parameters, which must be the
  // gradients of LossScale() times the loss. Requires a finite learning_rate >= 0. `measure` fills
  // in MomentLoss. The result is valid until the next call. The random bits are functions of (seed,
  // step, tensor); results do not depend on the number of threads.
  //
  // One factor takes out the loss scale and clips. For each tensor, the rule of config.kind updates
  // its states and computes a direction from the gradient times that factor (see optimizer_kinds.h,
  // and docs/optimizers.md for the formulas). The weights then take the step by config.update, with
  // decoupled weight decay. If a gradient is not finite, its tensor is skipped
  // (LossScaling::kTensor) or the whole step is (kDynamic); with kNone no weight changes either,
  // and the result has `finite` false. A skipped tensor does not count the step in its t.
  //
  // `without` has an element per parameter, or none: parameters whose element is not 0 have no
  // gradient in this step, are skipped and enter no norm. Throws Error for another size.
  //
  // On a device the call only starts the step, except for update rules that search, and what it
  // returns is not of this step: Last() is, and waits.
  const OptimizerStep& Step(double learning_rate,
                            uint64_t step,
                            bool measure = false,
                            std::span<const uint8_t> without = {});

  // Promises that from now on nobody else writes weights between steps, or takes the promise back
  // (the default). On a device, which may not move anything if one weight is not finite, a step then
  // reads the weights once instead of twice. Save, Restore and the host ignore it.
  void SetOnlyWriter(bool only_writer);

  // Whether Last() tells how a step moved each tensor (the default). Without it a device takes less
  // time where it has kernels for that: not for 4-bit, dynamic, COAT and stochastically rounded
  // moments, nor with OptimizerConfig::update_from_stored or an update rule that searches. rms,
  // update_rms, max_update and `weights` are then those of a tensor that was skipped. The host
  // ignores it.
  void SetReports(bool reports);

  // The result of the last Step; without tensors before the first. Waits for a device.
  const OptimizerStep& Last() const;

  // Bytes per parameter of the first moments, the second moments, the weights including the state
  // of their update rule, and the other states of the optimiser.
  struct Bytes {
    double m = 0, v = 0, weights = 0, other = 0;
    // Returns all bytes per parameter.
    double Sum() const { return m + v + weights + other; }
  };
  Bytes StoredBytes() const;               // averaged over all parameters
  Bytes StoredBytes(size_t tensor) const;  // for one tensor

  // Returns the whole state except the weights: "PARAMETER/steps", the states by their names ("/m",
  // "/v"), the state of the update rule if it has any ("/update.values" and so on), and
  // "loss_scaler".
  std::vector<NamedBytes> Save() const;
  // Restores what Save returned. Throws Error naming the piece that is missing, unknown or does not
  // fit; the optimiser must not be used afterwards.
  void Restore(const std::vector<NamedBytes>& state);

  // The state of another optimiser over parameters of the same names and sizes.
  struct Former {
    const OptimizerConfig& config;
    const LossScalerConfig& scaler;
    const std::vector<NamedBytes>& state;  // what its Save returned
    uint64_t step;                         // steps that it was asked to take
  };
  // Goes on from the state of another optimiser, whose weights the parameters have. Counts of steps
  // stay. Moments stay if they are stored in the same format; otherwise their values are stored in this
  // one's, with the random bits of (seed, step, tensor) if it rounds stochastically. The state of the
  // update rule stays if rule and weight format are the same; otherwise it begins with the weights, as
  // in the constructor. The state of the loss scaler stays if its configuration is the same. Requires a
  // host, and rules with the same states. Throws Error as Restore does.
  void GoOnFrom(const Former& former);

 private:
  Bytes TotalBytes(size_t tensor) const;
  void MeasureGradients();  // of the tensors that are not skipped
  void TakeSteps(const OptimizerInputs& inputs);

  OptimizerConfig config_;
  ParameterList<float>& parameters_;
  uint64_t seed_;
  LossScaler scaler_;
  std::unique_ptr<OptimizerAtPlace> there_;  // of a device; the members below are then not used
  std::vector<OptimizerTensor> tensors_;
  OptimizerStep result_;
  std::unique_ptr<OptimizerScratch> scratch_;
  std::vector<float> directions_;
};

}  // namespace numsim
