// The table of all keys of a configuration, in the order of docs/configuration.md.
#pragma once

#include <string_view>

#include "numsim/config/config.h"
#include "numsim/config/internal/config_rows.h"

namespace numsim {

// All keys but those of [[linear.override]].
const ConfigRows<TrainConfig>& TrainConfigRows();
// Those of one [[linear.override]], without "linear.override.N.".
const ConfigRows<LinearOverride>& LinearOverrideRows();

// Followed by the number and '.' of an override: "linear.override.0.layers".
inline constexpr std::string_view kOverrideSection = "linear.override";
// Names a preset whose values the other keys then change. Not a row: no field holds it.
inline constexpr std::string_view kPresetKey = "preset";

// The sections, each in a file of its own.
ConfigRows<ModelConfig> ModelRows();
ConfigRows<LinearOptions> LinearRows();
ConfigRows<OptimizerConfig> OptimizerRows();
ConfigRows<Schedule> ScheduleRows();
ConfigRows<LossScalerConfig> LossScalerRows();
ConfigRows<DataConfig> DataRows();
ConfigRows<LoopConfig> LoopRows();

}  // namespace numsim
