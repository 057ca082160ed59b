// Shared by the tests of `feature-statistics`: small settings.
#pragma once

#include "experiments/feature_statistics/feature_statistics.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/tiny_runs.h"

namespace numsim::experiments::feature_statistics {

// A model that trains in milliseconds.
inline const Overrides kTiny = TinyRun("feature-statistics");

inline Settings SettingsWith(Overrides overrides, int seeds = 1) {
  for (const auto& [name, value] : kTiny) overrides.emplace(name, value);
  return MakeSettings(FeatureStatistics(), "quick", 0, seeds, overrides);
}

}  // namespace numsim::experiments::feature_statistics
