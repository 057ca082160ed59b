// Settings of an experiment: built from a preset and overrides, kept in settings.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"

namespace numsim::experiments {

// The value of an option that is not given; `device`: under backend cuda.
const std::string& DefaultOf(const Option& option, std::string_view preset, bool device);

// Throws Error listing the presets of the experiment.
const Preset& FindPreset(const Experiment& experiment, std::string_view name);

// The defaults of `preset` and the active backend with `overrides` (option name
// without dashes -> text) on top. Throws Error for an unknown preset or option, listing the valid
// ones, and for seeds < 1. The values themselves are checked by the experiment's `points`.
Settings MakeSettings(const Experiment& experiment,
                      std::string_view preset,
                      uint64_t seed,
                      int seeds,
                      const std::map<std::string, std::string>& overrides);

// Throws Error naming the option and the first value that is listed twice: it would give two points
// of one name.
void CheckDistinct(std::string_view option, const std::vector<std::string>& values);

// Settings as stored with the name of their experiment.
struct StoredSettings {
  std::string experiment;
  Settings settings;
};

// Replaces the file in one step. Throws Error when it cannot be written.
void WriteSettings(const std::filesystem::path& path, const StoredSettings& stored);

// Throws Error naming the file when it cannot be read or is not such a file.
StoredSettings ReadSettings(const std::filesystem::path& path);

// "" when both are equal, else the first difference: `--seeds is 3 in A and 5 in B`, where A and B
// are `a_place` and `b_place`.
std::string FirstDifference(const StoredSettings& a,
                            std::string_view a_place,
                            const StoredSettings& b,
                            std::string_view b_place);

}  // namespace numsim::experiments
