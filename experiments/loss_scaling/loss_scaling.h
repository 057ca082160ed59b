// The experiment `loss-scaling`: fp16 training under loss scalers (appendix G of [SwitchBack]).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "numsim/config/config.h"
#include "numsim/stats/spikes.h"

namespace numsim::experiments {

Experiment LossScaling();

namespace loss_scaling {

inline constexpr std::string_view kRunsTable = "runs";
inline constexpr std::string_view kTensorsTable = "tensors";
inline constexpr std::string_view kScaleTable = "scale";
inline constexpr std::string_view kArmsTable = "arms";
inline constexpr std::string_view kRecoveryTable = "recovery";

inline constexpr std::string_view kFp32 = "fp32", kDynamic = "dynamic", kTensor = "tensor";
inline constexpr std::string_view kNatural = "natural", kBurst = "burst";

struct Arm {
  std::string scaler;  // fp32 (no scaler), dynamic or tensor; the latter two train in fp16
  std::string scale;   // initial scale, as text of --scales
  std::string event;   // natural or burst

  std::string Text() const { return scaler + " " + scale + " " + event; }
  friend bool operator==(const Arm&, const Arm&) = default;
};
Arm ArmOf(const Frame& row);
// Returns every arm once. Throws Error naming a bad option.
std::vector<Arm> ArmsOf(const Settings& settings);
Arm ArmOf(const Trial& trial);
TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed);
SpikeRule RuleOf(const Settings& settings);

// Returns the steps that the scaler needs to be back at its initial scale after `burst` steps in a row
// with gradients that are not finite.
uint64_t RecoverySteps(const LossScalerConfig& config, int burst);
// Returns true for the tensors in which the paper meets Inf and NaN: those before the first block and
// of block 0, of either tower.
bool IsEarly(std::string_view parameter);
// Returns true for the tensors of later blocks. Others, such as the logit scale, are neither.
bool IsLate(std::string_view parameter);

std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();

}  // namespace loss_scaling
}  // namespace numsim::experiments
