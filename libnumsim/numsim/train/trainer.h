// A training: model, data, optimiser and what is recorded of them, step by step.
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

enum class TrainStatus : uint8_t { kRunning, kFinished, kDiverged };
// running finished diverged. Throws Error listing them.
TrainStatus ParseTrainStatus(std::string_view text);
std::string_view ToString(TrainStatus status);

class Trainer {
 public:
  // Ready for step 0. `data` may be shared by many trainers. Throws Error as FitToData, MakeModel,
  // Optimizer, DataSource::CheckBatch and CheckStressPoint do. Any number of trainers may run side
  // by side in threads of their own.
  Trainer(const TrainConfig& config, std::shared_ptr<const DataSource> data);
  ~Trainer();

  // Takes one step, and a validation where one is due; adds rows to the telemetry (TelemetryTables
  // says when). A step whose loss or gradients are not finite is not taken, but recorded. Returns
  // the status after it. Requires kRunning. Allocates nothing of the size of a tensor after the
  // first. Throws Error as StretchInputs does.
  TrainStatus Step();
  TrainStatus status() const;
  // Why: "step 132: the loss is not finite". Empty while running and when finished.
  const std::string& reason() const;
  uint64_t steps_taken() const;
  // Of the last step; NaN before the first.
  double last_loss() const;
  // Mean of the last 10 steps, or of all while there are fewer; NaN before the first.
  double recent_loss() const;
  // Mean loss over the validation batches now. Nothing is recorded, and later steps do not depend
  // on it. Throws Error as StretchInputs does.
  LossSum Validate();
  // The last validation that was recorded.
  const std::optional<LossSum>& last_validation() const;
  // Of the last Validate, be it recorded or not; after Restore of the one that was recorded. Empty
  // before the first, and for models without embeddings.
  const std::optional<ZeroShot>& last_zero_shot() const;

  // The batch of the step that comes next, also where the training has ended. Throws Error as
  // StretchInputs does.
  void NextBatch(Batch& batch) const;

  // The configuration after FitToData.
  const TrainConfig& config() const;
  const DataSource& data() const;
  Model<float>& model();
  const Model<float>& model() const;
  Optimizer& optimizer();
  const Optimizer& optimizer() const;
  Telemetry& telemetry();
  // Of a step: of a language model batch * context; of others the examples.
  uint64_t tokens_per_step() const;
  // What those are: "tokens" or "examples".
  std::string_view unit() const;

  // Of the steps since the start or Restore, without validations; times are this machine's. What
  // is missing to step_seconds belongs to no part.
  const StepProfile& profile() const;
  uint64_t steps_timed() const;
  double step_seconds() const;

  // Everything that later steps depend on: parameters, optimiser, delayed scales, step, status,
  // losses. Save, then Restore into a Trainer of the same configuration, continues bit for bit.
  // Rows of telemetry are not part of it: who saves takes them away first. A larger train.steps
  // continues what had finished.
  TrainState Save() const;
  // Throws Error naming what does not fit; the trainer is then of no use.
  void Restore(const TrainState& state);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace numsim
