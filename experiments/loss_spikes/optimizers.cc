// The optimisers that `loss-spikes` compares.
#include "experiments/loss_spikes/loss_spikes.h"

namespace numsim::experiments::loss_spikes {
namespace {

template <bool StableOptions::*kSwitch>
void Variant(TrainConfig& config) {
  config.optimizer.kind = OptimizerKind::kStableAdamW;
  StableOptions& stable = config.optimizer.stable;
  stable.*kSwitch = !(stable.*kSwitch);
}

// Lion takes smaller steps and more weight decay, so that their product stays [Lion].
template <int kDivisor>
void SetLion(TrainConfig& config) {
  config.optimizer.kind = OptimizerKind::kLion;
  config.optimizer.beta2 = 0.99;
  config.schedule.peak /= kDivisor;
  config.optimizer.weight_decay *= kDivisor;
}

void SetStable(TrainConfig& config) { config.optimizer.kind = OptimizerKind::kStableAdamW; }
void SetClip(double norm, TrainConfig& config) { config.optimizer.clip_norm = norm; }

}  // namespace

const std::vector<OptimizerArm>& OptimizerArms() {
  static const std::vector<OptimizerArm> arms = {
      {kAdamW, "AdamW", [](TrainConfig&) {}},
      {kStable, "StableAdamW, Algorithm 2", SetStable},
      {"stable-adamw:decay",
       "weight decay by the unclipped rate, as in the author's code",
       Variant<&StableOptions::clipped_decay>},
      {"stable-adamw:added",
       "RMS of g / (sqrt(u) + epsilon), decay unclipped, as in Dinomaly",
       [](TrainConfig& config) {
         Variant<&StableOptions::epsilon_added>(config);
         config.optimizer.stable.clipped_decay = false;
       }},
      {"stable-adamw:previous",
       "RMS with the u of the step before, as in pytorch_optimizer's foreach path",
       Variant<&StableOptions::previous_u>},
      {"stable-adamw:update",
       "RMS of the whole update, as in levanter",
       Variant<&StableOptions::of_update>},
      {"stable-adamw:moment",
       "RMS with v_t^2 in place of g_t^2 (Appendix F.1)",
       Variant<&StableOptions::of_moment>},
      {"stable-adamw:global",
       "one RMS for all tensors, as in AdaFactor's description",
       Variant<&StableOptions::global>},
      {"clip-1", "AdamW with gradients clipped at norm 1", [](TrainConfig& c) { SetClip(1, c); }},
      {"clip-2", "AdamW with gradients clipped at norm 2", [](TrainConfig& c) { SetClip(2, c); }},
      {"stable-clip-1",
       "StableAdamW with gradients clipped at norm 1",
       [](TrainConfig& c) {
         SetStable(c);
         SetClip(1, c);
       }},
      {"lion:3", "Lion at a third of the rate and three times the decay", SetLion<3>},
      {"lion:10", "Lion at a tenth of the rate and ten times the decay", SetLion<10>},
      {"adafactor-style",
       "StableAdamW without a first moment, beta2 = 1 - t^-0.8; v is not factored",
       [](TrainConfig& config) {
         SetStable(config);
         config.optimizer.beta1 = 0;
         config.optimizer.beta2_decay = 0.8;
       }},
  };
  return arms;
}

std::vector<std::string> StableVariants() {
  std::vector<std::string> names;
  for (const OptimizerArm& arm : OptimizerArms()) {
    if (arm.name.starts_with("stable-adamw:")) names.emplace_back(arm.name);
  }
  return names;
}

}  // namespace numsim::experiments::loss_spikes
