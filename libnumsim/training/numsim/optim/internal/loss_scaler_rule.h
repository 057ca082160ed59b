// How a dynamic loss scale changes after a step, on host and device.
#pragma once

#include "numsim/base/host_device.h"
#include "numsim/optim/loss_scaler.h"

namespace numsim {

// The least scale: its reciprocal is finite.
inline constexpr float kLeastLossScale = 0x1p-126f;

// Does LossScaler::Update.
NUMSIM_HOST_DEVICE inline bool UpdateLossScale(const LossScalerConfig& config,
                                               bool finite,
                                               LossScaler::State& state) {
  if (config.kind != LossScaling::kDynamic) return true;
  if (!finite) {
    const auto smaller = static_cast<float>(state.scale * config.backoff);
    state.scale = static_cast<double>(smaller >= kLeastLossScale ? smaller : kLeastLossScale);
    state.taken_in_row = 0;
    ++state.skipped;
    return false;
  }
  if (++state.taken_in_row < config.growth_interval) return true;
  const auto larger = static_cast<float>(state.scale * config.growth);
  if (larger <= 0x1.fffffep127f) state.scale = static_cast<double>(larger);
  state.taken_in_row = 0;
  return true;
}

}  // namespace numsim
