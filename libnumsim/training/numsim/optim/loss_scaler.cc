#include "numsim/optim/loss_scaler.h"

#include <cmath>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/optim/internal/loss_scaler_rule.h"

namespace numsim {
namespace {

constexpr Keyword<LossScaling> kKinds[] = {
    {"none", LossScaling::kNone},
    {"dynamic", LossScaling::kDynamic},
    {"tensor", LossScaling::kTensor},
};

bool IsScale(double scale) {
  const auto rounded = static_cast<float>(scale);
  return std::isfinite(rounded) && rounded >= kLeastLossScale;
}

}  // namespace

LossScaling ParseLossScaling(std::string_view text) {
  return ParseKeyword(kKinds, "loss scaling", text);
}

std::string_view ToString(LossScaling kind) { return KeywordToString(kKinds, kind); }

std::string LossScalingNames() { return KeywordNames(kKinds); }

void CheckLossScalerConfig(const LossScalerConfig& config) {
  if (!IsScale(config.initial)) {
    throw KeyError::Format("loss_scaler.initial", "{} is not a normal float32 > 0", config.initial);
  }
  if (!(config.growth >= 1 && std::isfinite(config.growth))) {
    throw KeyError::Format("loss_scaler.growth", "{} is not a number >= 1", config.growth);
  }
  if (!(config.backoff > 0 && config.backoff < 1)) {
    throw KeyError::Format("loss_scaler.backoff", "{} is not in (0, 1)", config.backoff);
  }
  if (config.growth_interval < 1) {
    throw KeyError("loss_scaler.growth_interval", "0 is not a number of steps >= 1");
  }
}

LossScaler::LossScaler(const LossScalerConfig& config) : config_(config) {
  CheckLossScalerConfig(config);
  if (config.kind != LossScaling::kNone) {
    state_.scale = static_cast<double>(static_cast<float>(config.initial));
  }
}

bool LossScaler::Update(bool finite) { return UpdateLossScale(config_, finite, state_); }

void LossScaler::Restore(const State& state) {
  const bool dynamic = config_.kind == LossScaling::kDynamic;
  const bool fits = dynamic ? IsScale(state.scale) && state.taken_in_row < config_.growth_interval
                            : state.scale == state_.scale && state.taken_in_row == 0;
  if (!fits) {
    throw Error::Format("loss scaler state: scale {} after {} steps does not fit kind {}",
                        state.scale,
                        state.taken_in_row,
                        ToString(config_.kind));
  }
  state_ = state;
}

}  // namespace numsim
