// Shared by the tests of `feature-statistics`: small settings.
#pragma once

#include "experiments/feature_statistics/feature_statistics.h"
#include "tests/experiments/result_tables.h"

namespace numsim::experiments::feature_statistics {

// A model that trains in milliseconds.
inline const Overrides kTiny = {{"sizes", "2x16"},
                                {"layer-scales", "none,0"},
                                {"shapes", "128"},
                                {"image", "16"},
                                {"batch", "8"},
                                {"steps", "6"},
                                {"warmup", "2"},
                                {"every", "4"},
                                {"histories", "2"},
                                {"text-size", "16384"},
                                {"context", "16"}};

inline Settings SettingsWith(Overrides overrides, int seeds = 1) {
  for (const auto& [name, value] : kTiny) overrides.emplace(name, value);
  return MakeSettings(FeatureStatistics(), "quick", 0, seeds, overrides);
}

}  // namespace numsim::experiments::feature_statistics
