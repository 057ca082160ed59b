// The experiment `loss-scaling`: fp16 training under loss scalers (appendix G of [SwitchBack]).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/stats/spikes.h"

namespace numsim::experiments {

study::Study LossScalingStudy();
Experiment LossScaling();

namespace loss_scaling {

using study::Arm;
using study::Results;

// The places of the axes in an arm, and their choices.
enum Place : size_t { kScaler, kScale, kEvent };
inline constexpr const char *kFp32 = "fp32", *kDynamic = "dynamic", *kTensor = "tensor";
inline constexpr const char *kNatural = "natural", *kBurst = "burst";

SpikeRule RuleOf(const Settings& settings);
// Returns the steps that the scaler needs to be back at its initial scale after `burst` steps in a row
// with gradients that are not finite.
uint64_t RecoverySteps(const LossScalerConfig& config, int burst);
// Returns true for the tensors in which the paper meets Inf and NaN: those before the first block and
// of block 0, of either tower.
bool IsEarly(std::string_view parameter);
// Returns true for the tensors of later blocks. Others, such as the logit scale, are neither.
bool IsLate(std::string_view parameter);

study::ProbeSpec Scaling();
// Compares arms, by a training that diverged as no better than at its start.
Evidence Compare(const Results& results,
                 const study::ClaimRow& claim,
                 const std::vector<study::ArmContrast>& contrasts);
// Adds the functions that the claims in study.toml name.
void AddClaimFunctions(study::Functions& functions);

}  // namespace loss_scaling
}  // namespace numsim::experiments
