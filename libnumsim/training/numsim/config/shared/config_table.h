// The table of all keys of a configuration, in the order of docs/configuration.md.
#pragma once

#include <string_view>

#include "numsim/config/config.h"
#include "numsim/config/internal/config_rows.h"

namespace numsim {

// Returns all keys except those of [[linear.override]].
const ConfigRows<TrainConfig>& TrainConfigRows();
// Returns the keys of one [[linear.override]], without the prefix "linear.override.N.".
const ConfigRows<LinearOverride>& LinearOverrideRows();

// The section of overrides, followed by the override's number: "linear.override.0.layers".
inline constexpr std::string_view kOverrideSection = "linear.override";
// The key that names a preset, to which the other keys are applied. Not a row, because no field
// stores it.
inline constexpr std::string_view kPresetKey = "preset";
// The key that names a recipe, applied after the preset.
inline constexpr std::string_view kRecipeKey = "recipe";

// The key that says what the names of formats in a document mean (formats.md): kFormerNames, as in
// the configurations of numsim until November 2026, which do not have the key, or kTodaysNames. A
// document that is not part of a run and does not say it has today's names.
inline constexpr std::string_view kNamesKey = "names";
inline constexpr int kFormerNames = 1, kTodaysNames = 2;

// The rows of each section; see the config_*.cc files.
ConfigRows<ModelConfig> ModelRows();
ConfigRows<AttentionPrecision> AttentionRows();
ConfigRows<LinearOptions> LinearRows();
ConfigRows<OptimizerConfig> OptimizerRows();
ConfigRows<Schedule> ScheduleRows();
ConfigRows<LossScalerConfig> LossScalerRows();
ConfigRows<DataConfig> DataRows();
ConfigRows<LoopConfig> LoopRows();
ConfigRows<ForkConfig> ForkRows();
ConfigRows<WhatIfConfig> WhatIfRows();

}  // namespace numsim
