// Turns settings and arm of a study into the configuration of a training.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/study/study.h"
#include "numsim/base/error.h"
#include "numsim/config/config.h"

namespace numsim::experiments::study {

// An option of a study: a setting, or a list of values of an axis.
struct OptionRow {
  std::string name;
  const Setting* setting = nullptr;
  const Axis* axis = nullptr;
};
// Returns the option that a preset writes as `key`. Throws Error if the study has none.
OptionRow OptionOf(const Study& study, const std::string& key);
// Returns the options of a study in the order of its first preset.
std::vector<OptionRow> OptionsOf(const Study& study);

// Replaces each {NAME} by value(NAME).
std::string Fill(std::string_view pattern,
                 const std::function<std::string(const std::string&)>& value);

// A configuration, and the options that set its keys.
struct Assembled {
  TrainConfig config;
  std::map<std::string, std::string> option_of;  // by key

  // Returns an error about a key as one about the option that sets it, if one does.
  KeyError About(const KeyError& error) const;
};
// Throws Error naming the option of a bad value, and for an arm that cannot fork.
Assembled Assemble(const Study& study, const Settings& settings, const Arm& arm, uint64_t seed);
// Checks the limits of the settings. Throws Error naming the option.
void CheckSettings(const Study& study, const Settings& settings);

}  // namespace numsim::experiments::study
