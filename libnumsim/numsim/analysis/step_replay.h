// The next step of a training, done again and again in other precisions, to see what precision does
// to its gradients.
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

// The gradient of one parameter: row-major, divided by the loss scale, before clipping.
template <typename T>
struct NamedGradient {
  std::string name;  // of the parameter
  ParameterRole role = ParameterRole::kMatrix;
  MatrixShape shape;
  std::vector<T> values;
};

template <typename T>
struct StepGradients {
  LossSum loss;
  std::vector<NamedGradient<T>> gradients;  // in the order of the model's parameters

  // nullptr when there is none.
  const NamedGradient<T>* Find(std::string_view name) const;
};

// A tensor that is rounded for storage: a point (no pattern) in one role.
struct StoredTensor {
  std::string point;
  TensorRole role = TensorRole::kActivation;

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

// In which precision a replay computes.
struct ReplayPrecision {
  using Tensor = StoredTensor;

  LinearPrecision linear;
  StorageConfig storage;
  std::optional<Tensor> unrounded;     // is not rounded for storage, unlike the rest
  std::optional<Tensor> only_rounded;  // is rounded for storage, unlike the rest
};

// That of a training.
ReplayPrecision PrecisionOf(const TrainConfig& config);
// All products and tensors in float32.
ReplayPrecision Float32Precision();

class StepReplay {
 public:
  // Of the step that `trainer` would take next: its weights, delayed scales, loss scale, batch and
  // random draws, copied, so the trainer may go on and is not changed. Where the training has
  // ended, of the step that would come if it went on. Any number of threads may use one StepReplay
  // at once. Throws Error as Trainer::NextBatch does.
  explicit StepReplay(const Trainer& trainer);
  ~StepReplay();

  // The configuration of the trainer, after FitToData.
  const TrainConfig& config() const;
  // Steps taken before this one.
  uint64_t step() const;

  // Forward and backward pass under `precision`; the gradients may have NaN or infinity. The same
  // precision as the trainer's gives the bits of the trainer's own step, also below the range of a
  // storage format, since the loss scale is the trainer's. Layers with delayed scales start from
  // the trainer's; those that the trainer has none for start without a history. T = double: every
  // product and operation is float64, and what `precision` says of linear layers and storage is not
  // looked at: the shadow. config.stress applies to both. `observer` sees the tensors as they are
  // stored, the operands that are quantised and the products. Throws Error as MakeModel does, and
  // for delayed scaling with another history than the trainer's.
  template <typename T>
  StepGradients<T> Run(const ReplayPrecision& precision, PassObserver<T>* observer = nullptr) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace numsim
