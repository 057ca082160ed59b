// A training run: takes the steps of a model, its data and its optimiser, and records telemetry.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/linear/step_profile.h"
#include "numsim/models/model.h"
#include "numsim/optim/optimizer.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/telemetry.h"
#include "numsim/train/zero_shot.h"

namespace numsim {

// Whether a training goes on, has ended or has diverged.
enum class TrainStatus : uint8_t { kRunning, kFinished, kDiverged };
// Names: running, finished, diverged. ParseTrainStatus throws Error listing them.
TrainStatus ParseTrainStatus(std::string_view text);
std::string_view ToString(TrainStatus status);

// A training, step by step.
class Trainer {
 public:
  // Prepares step 0. Several trainers may share `data` and run concurrently, each in its own
  // thread. Throws Error as FitToData, MakeModel, Optimizer, DataSource::CheckBatch and
  // CheckStressPoint do, if a pattern of what_if.layers names no layer, and under the backend cuda.
  Trainer(const TrainConfig& config, std::shared_ptr<const DataSource> data);
  ~Trainer();

  // Takes one step, runs a validation if one is due, and adds rows to the telemetry (see
  // TelemetryTable::when). A step whose loss or gradients are not finite is recorded but not taken.
  // Returns the status after the step. Requires status kRunning. After the first step, makes no
  // allocation of the size of a tensor. Throws Error as StretchInputs does.
  TrainStatus Step();
  TrainStatus status() const;
  // Why the training diverged, e.g. "step 132: the loss is not finite". Empty if it did not.
  const std::string& reason() const;
  uint64_t steps_taken() const;
  // Loss of the last step; NaN before the first.
  double last_loss() const;
  // Mean loss of the last 10 steps, or of all steps if fewer; NaN before the first.
  double recent_loss() const;
  // The optimiser's result of the last step that it was asked to take; valid until the next step.
  // Without tensors before the first.
  const OptimizerStep& last_update() const;
  // Returns the loss over the validation batches with the current weights. Records nothing and does
  // not affect later steps. Throws Error as StretchInputs does.
  LossSum Validate();
  // The last recorded validation.
  const std::optional<LossSum>& last_validation() const;
  // Retrieval result of the last Validate, recorded or not; after Restore, of the last recorded
  // validation. Empty before the first validation, and for models without embeddings.
  const std::optional<ZeroShot>& last_zero_shot() const;

  // Shows the tensors of every later training pass to `observer`, after the perturbations of [stress]
  // and before they are stored; it may change them. Null: to none. Not part of a saved state. The
  // observer must outlive its use.
  void Observe(PassObserver<float>* observer);

  // Makes the batch of the next step, also if the training has ended; of several parts the first.
  // Throws Error as StretchInputs does.
  void NextBatch(Batch& batch) const;

  // Goes on from the state of the baseline if the next step is the first after the fork, as Step does.
  // Model and optimiser are then others. Does nothing otherwise.
  void ForkIfDue();

  // The configuration after FitToData, with its fork.
  const TrainConfig& config() const;
  const DataSource& data() const;
  // Model and optimiser of this side of the fork (ForkConfig); Step replaces both at the fork.
  Model<float>& model();
  const Model<float>& model() const;
  Optimizer& optimizer();
  const Optimizer& optimizer() const;
  Telemetry& telemetry();
  // batch * context for a language model; the number of examples for other models.
  uint64_t tokens_per_step() const;
  // The unit of tokens_per_step: "tokens" or "examples".
  std::string_view unit() const;

  // Times of the steps since the start or Restore, without validations. The phases of the profile
  // need not add up to step_seconds.
  const StepProfile& profile() const;
  uint64_t steps_timed() const;
  double step_seconds() const;
  double fastest_step_seconds() const;  // 0 before the first step

  // Returns everything that later steps and their telemetry depend on: parameters, optimiser,
  // delayed scales (also those of what-if telemetry), step, status, losses. Restoring it into a
  // Trainer of the same configuration continues the training bit for bit. Telemetry rows are not
  // included: write them to files before saving.
  TrainState Save() const;
  // Restores a state. A finished training continues if train.steps is larger than before. Throws
  // Error naming what does not fit; the trainer must not be used afterwards.
  void Restore(const TrainState& state);
  // Restores a state of the baseline (config/fork.h), saved before the fork or at it. Throws Error as
  // Restore does, and for a state behind the fork. Requires a configuration with a fork.
  void RestoreBaseline(const TrainState& state);

 private:
  void RestoreParts(const TrainState& state, const TrainConfig& of, bool forked);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Throws KeyError that lists the parameters if config.moment_tensors matches none of them.
void CheckMomentTensors(const OptimizerConfig& config, const ParameterList<float>& parameters);

}  // namespace numsim
