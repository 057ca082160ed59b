// Shared by the tests of `fp8-interventions`: small settings.
#pragma once

#include <map>
#include <string>

#include "experiments/core/settings.h"
#include "experiments/fp8_interventions/fp8_interventions.h"
#include "tests/experiments/tiny_runs.h"

namespace numsim::experiments::fp8_interventions {

using Overrides = std::map<std::string, std::string>;

// A model that trains in milliseconds.
inline const Overrides kTiny = TinyRun("fp8-interventions");

inline Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

inline Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(Fp8Interventions(), "quick", 0, seeds, overrides);
}

}  // namespace numsim::experiments::fp8_interventions
