// Settings of an experiment: built from a preset and overrides, stored in settings.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

// Returns the default value of an option under `preset`; `device` is true under the backend cuda.
const std::string& DefaultOf(const Option& option, std::string_view preset, bool device);

// Returns the preset of that name. Throws Error listing the presets when there is none.
const Preset& FindPreset(const Experiment& experiment, std::string_view name);

// Returns the defaults of `preset` and the active backend, with `overrides` (option name without
// dashes -> text) on top. Defaults follow overrides as Option::part_of and at_most say. Throws Error
// for an unknown preset or option (listing the valid ones), for seeds < 1, for max_seeds < seeds
// unless it is 0, and for a last seed above 2^64 - 1.
// Experiment::trials checks the option values.
Settings MakeSettings(const Experiment& experiment,
                      std::string_view preset,
                      uint64_t seed,
                      int seeds,
                      const std::map<std::string, std::string>& overrides,
                      int max_seeds = 0);

// Returns the settings with the most seeds that the run may use.
Settings WithAllSeeds(Settings settings);
// Returns the numbers of seeds after which a run judges its claims: one look after the other until
// all primary claims are decided. Only `seeds` without max_seeds.
std::vector<int> LooksOf(const Settings& settings);

// Throws Error naming the option and the first value that is listed twice: such a value would give
// two trials the same label.
void CheckDistinct(std::string_view option, const std::vector<std::string>& values);

// Settings and the name of their experiment, as stored in settings.json.
struct StoredSettings {
  std::string experiment;
  Settings settings;
  // True if the file was written before November 2026, when some names of formats had another
  // meaning (numsim/formats/format_names.h). The settings have today's names; labels and cells of
  // the results beside the file need FromFormerNames.
  bool former_names = false;
};

// Returns a text of old results with its names of formats replaced by today's. `experiment` may be
// null.
std::string FromFormerNames(const Experiment* experiment, const std::string& text);

// Writes the settings with a digest of them, replacing the file in one step. Throws Error when it
// cannot be written.
void WriteSettings(const std::filesystem::path& path, const StoredSettings& stored);

// Reads the settings, with today's names of formats. Throws Error naming the file when it cannot be
// read, is no settings file, or has been changed since it was written; in files of older versions, which
// have no digest, a change is not noticed.
StoredSettings ReadSettings(const std::filesystem::path& path);

// Reads settings of `experiment`, and adds its options that they lack (AddNewOptions). Throws Error
// naming the file also if it belongs to another experiment, lacks an option that has no such value,
// or has one that the experiment does not have.
StoredSettings ReadSettingsOf(const Experiment& experiment, const std::filesystem::path& path);

// Adds to settings that an older version stored the options that the experiment has gained since:
// those with Option::before, and those whose default is empty, since an empty option has no effect.
void AddNewOptions(const Experiment& experiment, Settings& settings);

// Returns "" when both are equal, otherwise the first difference: `--seeds is "3" in A and "5" in
// B`, where A and B are `a_place` and `b_place`.
std::string FirstDifference(const StoredSettings& a,
                            std::string_view a_place,
                            const StoredSettings& b,
                            std::string_view b_place);

}  // namespace numsim::experiments
