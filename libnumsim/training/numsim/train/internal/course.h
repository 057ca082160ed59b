// The course of a training: what it has come to, apart from its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "numsim/data/source.h"
#include "numsim/ops/loss.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/internal/loss_history.h"
#include "numsim/train/recorded_run.h"
#include "numsim/train/telemetry.h"
#include "numsim/train/trainer.h"
#include "numsim/train/zero_shot.h"

namespace numsim {

// Returns true if something that happens every so many steps is due at this one; 0: never.
bool IsDue(uint64_t step, uint64_t every);
// Returns Trainer::tokens_per_step and its unit.
uint64_t TokensPerStep(const TrainConfig& config);
std::string_view UnitOf(const TrainConfig& config);

struct Course {
  TrainStatus status = TrainStatus::kRunning;
  std::string reason;
  uint64_t step = 0;  // number of steps taken
  LossHistory losses;
  std::optional<LossSum> validation;  // the last recorded validation
  std::optional<ZeroShot> zero_shot;  // of that validation
  uint64_t validated_at = 0;          // its step

  // Takes note of a step whose loss is in `losses`.
  void EndStep(const LoopConfig& loop, bool gradients_are_finite);
  // Takes note that a step was not taken because the loss is not finite.
  void EndAtLoss();

  // Returns true if a validation is to be recorded now.
  bool ValidationIsDue(const LoopConfig& loop) const;
  void RecordValidation(const TrainConfig& config,
                        const LossSum& loss,
                        const std::optional<ZeroShot>& retrieval,
                        Telemetry& telemetry);
  // Adds a row about step `index`, which has ended, if one is due.
  void RecordStep(const TrainConfig& config,
                  uint64_t index,
                  const StepNumbers& numbers,
                  Telemetry& telemetry) const;

  // Adds the fields of a checkpoint.
  void Save(const TrainConfig& config, const DataSource& data, TrainState& state) const;
  // Restores them. Throws Error if they do not fit the configuration or the data.
  void Restore(const TrainConfig& config, const DataSource& data, const TrainState& state);
};

inline constexpr const char* kForkedField = "forked";  // of a checkpoint of a training with a fork

// Adds that field: whether the state is behind the fork.
void SaveSide(const TrainConfig& config, bool forked, TrainState& state);

}  // namespace numsim
