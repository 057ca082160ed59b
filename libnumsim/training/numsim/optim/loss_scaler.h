// Loss scaling: the scale by which the loss is multiplied before the backward pass, and the
// handling of gradients that are not finite.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace numsim {

// The kinds of loss scaling.
enum class LossScaling : uint8_t {
  kNone,     // scale 1; gradients that are not finite end the training as diverged
  kDynamic,  // PyTorch's GradScaler: skips a step that has any NaN or infinity [GradScaler]
  kTensor,   // a fixed scale; skips only the tensors that have NaN or infinity [SwitchBack]
};
// Names: none, dynamic, tensor. ParseLossScaling throws Error for any other text.
LossScaling ParseLossScaling(std::string_view text);
std::string_view ToString(LossScaling kind);
std::string LossScalingNames();

// The settings of loss scaling ([loss_scaler]).
struct LossScalerConfig {
  LossScaling kind = LossScaling::kNone;
  double initial = 65536;  // kDynamic: initial scale. kTensor: fixed scale. kNone: ignored
  double growth = 2, backoff = 0.5;
  uint64_t growth_interval = 2000;

  friend bool operator==(const LossScalerConfig&, const LossScalerConfig&) = default;
};

// Throws Error naming the field (e.g. "loss_scaler.growth") unless initial is a normal float32 > 0,
// growth >= 1, backoff is in (0, 1) and growth_interval >= 1.
void CheckLossScalerConfig(const LossScalerConfig& config);

// Chooses the loss scale of each step, and which steps or tensors are skipped.
class LossScaler {
 public:
  // Throws Error under the same conditions as CheckLossScalerConfig.
  explicit LossScaler(const LossScalerConfig& config);

  // Returns the settings.
  const LossScalerConfig& config() const { return config_; }
  // Returns the current scale, always a normal float32.
  double Scale() const { return state_.scale; }
  // Call after each backward pass; `finite` is true if all gradients are finite. Returns true if
  // the step is to be taken (always for kTensor and kNone). With kDynamic it also adjusts the
  // scale: times backoff after a skipped step, times growth after growth_interval consecutive taken
  // steps. The new scale is rounded to float32. If it would overflow, the scale stays as it is, as
  // in PyTorch. The scale never falls below 2^-126, whereas PyTorch's can reach 0.
  bool Update(bool finite);
  uint64_t Skipped() const { return state_.skipped; }  // number of skipped steps; kDynamic only

  // The state for a checkpoint.
  struct State {
    double scale = 1;
    uint64_t taken_in_row = 0, skipped = 0;
  };
  // Returns the state.
  State Save() const { return state_; }
  // Throws Error for a state that no training with this configuration can have.
  void Restore(const State& state);

 private:
  LossScalerConfig config_;
  State state_;
};

}  // namespace numsim
