#include "experiments/study/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "experiments/runner/arm_rates.h"
#include "experiments/runner/option_names.h"
#include "experiments/study/fork.h"
#include "experiments/study/name_list.h"
#include "experiments/study/study_rates.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/split_list.h"

namespace numsim::experiments::study {
namespace {

constexpr std::string_view kStudySection = "study.";

template <typename Row>
const Row* WithName(const std::vector<Row>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == rows.end() ? nullptr : &*found;
}

// Returns the common setting that sets the key first.
const Setting* SettingOfKey(const std::string& key) {
  for (const Setting& setting : CommonSettings()) {
    if (!setting.keys.empty() && setting.keys.front() == key + "=$") return &setting;
  }
  return nullptr;
}

const Setting* SettingNamed(const Study& study, const std::string& name) {
  const Setting* const own = WithName(study.settings, name);
  return own != nullptr ? own : WithName(CommonSettings(), name);
}

const Axis* AxisOfOption(const Study& study, const std::string& name) {
  for (const Axis& axis : study.axes) {
    if (std::ranges::count(axis.options, name) > 0) return &axis;
  }
  return nullptr;
}

// Adds assignments of keys, and remembers the options that made them.
class Assignments {
 public:
  explicit Assignments(const Settings& settings) : settings_(settings) {}

  // Adds keys whose values may name options; "$" is `value`.
  void Add(const Keys& keys, const std::string& value, const std::string& option) {
    for (const std::string& assignment : keys) {
      const size_t equals = assignment.find('=');
      const std::string key = assignment.substr(0, equals);
      const std::string text = assignment.substr(equals + 1);
      if (text == "$") {
        AddText(key, value, option);
      } else if (text.starts_with('$')) {
        AddText(key, settings_.Get(text.substr(1)), text.substr(1));
      } else {
        AddText(key, text, option);
      }
    }
  }
  void AddText(const std::string& key, const std::string& text, const std::string& option) {
    // A path is text, whatever it looks like.
    const bool path = key.ends_with("path") && text.find_first_of("'\"") == text.npos;
    all_.push_back(path ? fmt::format("{}='{}'", key, text) : key + "=" + text);
    option_of_[key] = option;
  }
  void AddGiven(const std::string& assignment) { all_.push_back(assignment); }

  Assembled Take() {
    Assembled assembled;
    try {
      SetConfigKeys(all_, assembled.config);
    } catch (const Error& error) {
      throw Renamed(error.what());
    }
    assembled.option_of = std::move(option_of_);
    return assembled;
  }

 private:
  // Returns the error "--set: KEY: ..." as one about the option that set the key.
  Error Renamed(const std::string& message) const {
    constexpr std::string_view kSet = "--set: ";
    const size_t end = message.find(": ", kSet.size());
    if (!message.starts_with(kSet) || end == message.npos) return Error(message);
    const auto option = option_of_.find(message.substr(kSet.size(), end - kSet.size()));
    if (option == option_of_.end() || option->second.empty()) return Error(message);
    return Error::Format(
        "--{} '{}'{}",
        option->second,
        settings_.options.contains(option->second) ? settings_.Get(option->second) : "",
        message.substr(end));
  }

  const Settings& settings_;
  std::vector<std::string> all_;
  std::map<std::string, std::string> option_of_;
};

std::vector<std::string> GivenKeys(const Settings& settings) {
  const std::string& keys = settings.Get(kKeysOption);
  std::vector<std::string> assignments;
  std::istringstream pieces(keys);
  for (std::string piece; std::getline(pieces, piece, ';');) assignments.push_back(piece);
  return assignments;
}

// Throws Error if the study sets a key that the user gave.
void CheckGivenKeys(const Settings& settings, const TrainConfig& config) {
  for (const std::string& assignment : GivenKeys(settings)) {
    TrainConfig wanted = config;
    SetConfigKeys({assignment}, wanted);
    if (WriteTrainConfig(wanted) == WriteTrainConfig(config)) continue;
    throw Error::Format("--set {}: the experiment sets this key itself", assignment);
  }
}

void AddSetting(const Setting& setting, const Settings& settings, Assignments& assignments) {
  const std::string& value = settings.Get(setting.name);
  for (const Choice& choice : setting.choices) {
    if (choice.name == value) return assignments.Add(choice.keys, value, setting.name);
  }
  if (setting.only_choices) {
    throw NotOneOf("--" + setting.name, value, NameList(setting.choices, &Choice::name));
  }
  assignments.Add(setting.keys, value, setting.name);
}

// Returns the option of the arm's choice on the axis Axis::option_by.
std::string OptionBy(const Study& study, const Axis& axis, const Arm& arm) {
  const size_t by = NumberOf(study, axis.option_by);
  const std::vector<Choice>& choices = study.axes[by].choices;
  const auto choice = std::ranges::find(choices, arm.at(by), &Choice::name);
  return axis.options.at(static_cast<size_t>(choice - choices.begin()));
}

// Returns the option of an axis that has a value of an arm.
std::string OptionWith(const Study& study,
                       const Axis& axis,
                       const Settings& settings,
                       const Arm& arm,
                       const std::string& value) {
  if (!axis.option_by.empty()) return OptionBy(study, axis, arm);
  for (const std::string& option : axis.options) {
    const Setting* const single = SettingNamed(study, option);
    if (single != nullptr && settings.Get(option) == value) return option;
  }
  return axis.options.empty() ? "" : axis.options.back();
}

void CheckLimits(const Settings& settings, const std::string& option, const Limits& limits) {
  if (limits.whole) {
    settings.GetInteger(
        option, static_cast<int64_t>(limits.low), static_cast<int64_t>(limits.high));
  } else {
    settings.GetDouble(option, limits.low, limits.high);
  }
}

// Checks the numbers that the options of an axis list, so that an error names the option.
void CheckNumbers(const Axis& axis, const Settings& settings) {
  Settings single = settings;
  for (const std::string& option : axis.options) {
    for (const std::string& value : settings.GetListOrNone(option)) {
      single.options[option] = value;
      CheckLimits(single, option, *axis.limits);
    }
  }
}

void AddArm(const Study& study,
            const Arm& arm,
            const Settings& settings,
            Assignments& assignments) {
  std::map<std::string, std::string> named;  // axis by key that one of its named choices sets
  for (size_t i = 0; i < study.axes.size(); ++i) {
    const Axis& axis = study.axes[i];
    const Choice choice = ChoiceOf(axis, arm.at(i));
    const bool is_named = std::ranges::count(axis.choices, choice.name, &Choice::name) > 0;
    for (const std::string& assignment : choice.keys) {
      const std::string key = assignment.substr(0, assignment.find('='));
      if (named.contains(key)) {
        throw Error::Format(
            "the axes {} and {} both set {}: the choice of the former would be lost",
            named.at(key),
            axis.name,
            key);
      }
      if (is_named) named[key] = axis.name;
    }
    assignments.Add(choice.keys, choice.name, OptionWith(study, axis, settings, arm, choice.name));
  }
}

}  // namespace

OptionRow OptionOf(const Study& study, const std::string& key) {
  const bool named = key.starts_with(kStudySection);
  const std::string name = named ? key.substr(kStudySection.size()) : "";
  const Setting* setting = named ? WithName(study.settings, name) : SettingOfKey(key);
  const Axis* const axis = AxisOfOption(study, name);
  if (setting == nullptr && axis != nullptr) return {.name = name, .axis = axis};
  if (setting == nullptr) setting = WithName(CommonSettings(), name);
  if (setting != nullptr) return {.name = setting->name, .setting = setting};
  throw Error::Format("{}: a preset sets {}, no option", study.name, key);
}

std::vector<OptionRow> OptionsOf(const Study& study) {
  std::vector<OptionRow> rows;
  for (const auto& [key, value] : study.presets.front().values) {
    rows.push_back(OptionOf(study, key));
  }
  return rows;
}

std::string Fill(std::string_view pattern,
                 const std::function<std::string(const std::string&)>& value) {
  std::string text;
  while (!pattern.empty()) {
    const size_t begin = std::min(pattern.find('{'), pattern.size());
    text += pattern.substr(0, begin);
    pattern.remove_prefix(begin);
    if (pattern.empty()) break;
    const size_t end = pattern.find('}');
    if (end == pattern.npos) throw Error::Format("'{}': a brace is not closed", pattern);
    text += value(std::string(pattern.substr(1, end - 1)));
    pattern.remove_prefix(end + 1);
  }
  return text;
}

KeyError Assembled::About(const KeyError& error) const {
  const auto option = option_of.find(error.key());
  if (option == option_of.end() || option->second.empty()) return error;
  return {"--" + option->second, error.text()};
}

namespace {

Assembled AssembleWhole(const Study& study,
                        const Settings& settings,
                        const Arm& arm,
                        uint64_t seed) {
  Assignments assignments(settings);
  for (const auto& [key, value] : study.defaults) assignments.AddText(key, value, "");
  for (const std::string& given : GivenKeys(settings)) assignments.AddGiven(given);
  for (const auto& [key, value] : study.fixed) assignments.AddText(key, value, "");
  const std::vector<OptionRow> options = OptionsOf(study);
  for (const bool choices : {false, true}) {  // a choice, such as the model's, may overrule a key
    for (const OptionRow& row : options) {
      if (row.setting == nullptr || row.setting->choices.empty() == choices) continue;
      AddSetting(*row.setting, settings, assignments);
    }
  }
  AddArm(study, arm, settings, assignments);
  if (study.computed) assignments.Add(study.computed(settings, arm), "", "");
  if (study.rates) {
    if (const auto rate = ChosenRate(study, settings, arm)) {
      assignments.AddText("schedule.peak", *rate, std::string(kRatesOption));
    }
  }
  assignments.AddText("train.seed", fmt::format("{}", seed), "");
  assignments.AddText("train.valid_every", "0", "");
  Assembled assembled = assignments.Take();
  TrainConfig& config = assembled.config;
  config.schedule.steps = config.train.steps;
  config.telemetry.every = std::numeric_limits<uint64_t>::max();
  CheckGivenKeys(settings, config);
  if (config.fork.steps != 0 || !config.fork.before.empty()) {
    throw Error::Format("--set fork: --{} says after how many steps arms fork", kForkOption);
  }
  return assembled;
}

}  // namespace

Assembled Assemble(const Study& study, const Settings& settings, const Arm& arm, uint64_t seed) {
  Assembled assembled = AssembleWhole(study, settings, arm, seed);
  if (ForkAfter(settings) == 0) return assembled;
  const Arm from = study.forks_from(settings, arm);
  const Assembled baseline = AssembleWhole(study, settings, from, seed);
  try {
    assembled.config = WithFork(settings, baseline.config, std::move(assembled.config));
  } catch (const KeyError& error) {
    throw Error::Format("--{} {}: {} cannot go on from {}: {}",
                        kForkOption,
                        ForkAfter(settings),
                        ArmText(study, arm, study.label),
                        ArmText(study, from, study.label),
                        error.what());
  }
  assembled.option_of["fork.steps"] = kForkOption;
  return assembled;
}

void CheckSettings(const Study& study, const Settings& settings) {
  for (const Axis& axis : study.axes) {
    if (axis.limits) CheckNumbers(axis, settings);
  }
  for (const OptionRow& row : OptionsOf(study)) {
    if (row.setting == nullptr || !row.setting->limits) continue;
    const Setting& setting = *row.setting;
    const std::string& value = settings.Get(setting.name);
    if (std::ranges::count(setting.choices, value, &Choice::name) > 0) continue;
    Limits limits = *setting.limits;
    for (const std::string& other : {setting.at_most, setting.most}) {
      if (other.empty() || !limits.whole) continue;
      limits.high = static_cast<double>(settings.GetInteger(other, 1, kMostSteps));
    }
    CheckLimits(settings, setting.name, limits);
  }
}

}  // namespace numsim::experiments::study
