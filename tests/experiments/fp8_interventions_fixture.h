// Shared by the tests of `fp8-interventions`: small settings.
#pragma once

#include <map>
#include <string>

#include "experiments/core/settings.h"
#include "experiments/fp8_interventions/fp8_interventions.h"

namespace numsim::experiments::fp8_interventions {

using Overrides = std::map<std::string, std::string>;

// A model that trains in milliseconds.
inline const Overrides kTiny = {{"interventions", "layer-scale"},
                                {"formats", "e2m3"},
                                {"plant-point", "*blocks.0.mlp.down"},
                                {"shapes", "512"},
                                {"layers", "2"},
                                {"text-layers", "1"},
                                {"width", "16"},
                                {"patch", "8"},
                                {"text-size", "16384"},
                                {"context", "16"},
                                {"batch", "4"},
                                {"steps", "10"},
                                {"warmup", "2"},
                                {"records", "2"},
                                {"snapshots", "2"},
                                {"valid-batches", "2"}};

inline Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

inline Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(Fp8Interventions(), "quick", 0, seeds, overrides);
}

}  // namespace numsim::experiments::fp8_interventions
