// Replays the next step of a training in other precisions, to measure the effect of precision on
// its gradients.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/models/parameter.h"
#include "numsim/models/pass.h"
#include "numsim/ops/loss.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/train/trainer.h"

namespace numsim {

// The gradient of one parameter: row-major, without the loss scale, before clipping.
template <typename T>
struct NamedGradient {
  std::string name;  // the parameter's name
  ParameterRole role = ParameterRole::kMatrix;
  MatrixShape shape;
  std::vector<T> values;
};

// The loss and the gradients of one step.
template <typename T>
struct StepGradients {
  LossSum loss;
  std::vector<NamedGradient<T>> gradients;  // in the order of the model's parameters

  // Returns the gradient of that parameter, or nullptr if there is none.
  const NamedGradient<T>* Find(std::string_view name) const;
};

// A tensor that is rounded for storage: its name (not a pattern) and role.
struct StoredTensor {
  std::string point;
  TensorRole role = TensorRole::kActivation;

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

// The precision in which a replay computes.
struct ReplayPrecision {
  // A tensor that is rounded for storage.
  using Tensor = StoredTensor;

  LinearPrecision linear = {};
  StorageConfig storage = {};
  std::optional<Tensor> unrounded = {};     // the only tensor not rounded for storage
  std::optional<Tensor> only_rounded = {};  // the only tensor rounded for storage
};

// Returns the precision of a training.
ReplayPrecision PrecisionOf(const TrainConfig& config);
// Returns the precision with all GEMMs and tensors in float32.
ReplayPrecision Float32Precision();

// One step of a training, computed again in other precisions.
class StepReplay {
 public:
  // Copies the state of the step that `trainer` would take next: its weights, delayed scales, loss
  // scale, batch and random seeds. Does not change the trainer, which may continue. If the training
  // has ended, this is the step that would follow. Several threads may use one StepReplay at the
  // same time. Throws Error as Trainer::NextBatch does, and if train.accumulate is not 1.
  explicit StepReplay(const Trainer& trainer);
  ~StepReplay();

  // The configuration of the trainer, after FitToData.
  const TrainConfig& config() const;
  // Steps taken before this one.
  uint64_t step() const;

  // Runs the forward and backward pass under `precision` and returns loss and gradients, which may
  // have NaN or infinity. Under the trainer's own precision, the result equals the trainer's step
  // bit for bit, also below the range of a storage format, because the loss scale is the trainer's.
  // Layers with delayed scaling start from the trainer's scales, or without a history if the
  // trainer has none for the layer. T = double is the float64 reference run: every GEMM and
  // operation is float64, and `precision` is ignored. config.stress applies to both types.
  // `observer` sees the tensors as stored, the inputs of linear layers, the quantised operands and
  // the GEMMs. Throws Error as MakeModel does, and for delayed scaling with a history of another
  // length than the trainer's.
  template <typename T>
  StepGradients<T> Run(const ReplayPrecision& precision, PassObserver<T>* observer = nullptr) const;

  // Runs the float64 reference run with the weights moved by `distance` times `direction`, which has
  // the values of each parameter in the order of the model. Throws Error as MakeModel does.
  StepGradients<double> RunMoved(const std::vector<NamedGradient<double>>& direction,
                                 double distance) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace numsim
