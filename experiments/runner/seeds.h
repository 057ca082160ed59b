// Which seeds are for what. Seeds that chose something never judge it.
#pragma once

#include <cstdint>

#include "experiments/claims/run_settings.h"

namespace numsim::experiments {

// A run judges with seeds below this one. Those from here on are of pilots (`numsim pilot`).
inline constexpr uint64_t kFirstPilotSeed = 1'000'000;
// Those from here on choose the learning rates of arms.
inline constexpr uint64_t kFirstTuningSeed = 2'000'000;

// Throws Error that names the seed if a run has one that does not judge: from kFirstPilotSeed on.
void CheckJudgingSeeds(const Settings& settings);

}  // namespace numsim::experiments
