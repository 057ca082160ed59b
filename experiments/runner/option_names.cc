#include "experiments/runner/option_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments {
namespace {

// Options whose names differ from those of their configuration keys.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"data.path", "text"},
    {"data.path", "captions"},
    {"data.size", "text-size"},
    {"data.size", "shapes"},
    {"model.kind", "model"},
    {"model.layers", "sizes"},
    {"model.width", "sizes"},
    {"model.heads", "sizes"},
    {"optimizer.clip_norm", "clip"},
    {"optimizer.kind", "optimizer"},
    {"schedule.final", "final-lr"},
    {"schedule.peak", "lr"},
    {"storage.activations", "storage"},
    {"storage.gradients", "storage"},
};

bool Has(const Experiment& experiment, const std::string& option) {
  return std::any_of(experiment.options.begin(), experiment.options.end(), [&](const Option& one) {
    return one.name == option;
  });
}

// Returns the options that may set a configuration key, the likeliest first: "lr" for
// "schedule.peak", "weight-decay" for "optimizer.weight_decay".
std::vector<std::string> OptionsForKey(std::string_view key) {
  if (key == "fork.steps") return {std::string(kForkOption)};
  if (key.starts_with("fork.")) return {};
  std::string name(key.substr(key.find('.') + 1));
  std::replace(name.begin(), name.end(), '_', '-');
  std::vector<std::string> options = {std::move(name)};
  for (const auto& [other_key, option] : kOtherNames) {
    if (other_key == key) options.emplace_back(option);
  }
  return options;
}

// Returns the option that a name or a configuration key means; "" if there is none.
std::string OptionOf(const Experiment& experiment, std::string_view name) {
  if (Has(experiment, std::string(name))) return std::string(name);
  if (name.find('.') == std::string_view::npos) return "";
  for (std::string& option : OptionsForKey(name)) {
    if (Has(experiment, option)) return std::move(option);
  }
  return "";
}

void AddKey(const std::string& assignment, std::string& keys) {
  if (assignment.find(';') != std::string::npos) {
    throw Error::Format("--set {}: the value contains ';', which separates keys", assignment);
  }
  keys += (keys.empty() ? "" : ";") + assignment;
}

}  // namespace

std::string ResolveOption(const Experiment& experiment, std::string_view name) {
  std::string known = OptionOf(experiment, name);
  if (!known.empty()) return known;
  std::vector<std::string> names;
  for (const Option& option : experiment.options) names.push_back(option.name);
  const std::string near = NearestName(std::string(name), names);
  throw Error::Format(
      "--set {}: {} has no such option, and none that sets such a key{}; numsim "
      "describe {} lists them",
      name,
      experiment.name,
      near.empty() ? "" : fmt::format("; did you mean {}?", near),
      experiment.name);
}

void AddAssignment(const Experiment& experiment,
                   const std::string& assignment,
                   std::map<std::string, std::string>& given) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    throw Error::Format("--set '{}' is not of the form NAME=VALUE, e.g. schedule.peak=1e-3",
                        assignment);
  }
  const std::string name = assignment.substr(0, equals);
  const bool is_key = name.find('.') != std::string::npos;
  if (OptionOf(experiment, name).empty() && is_key && Has(experiment, std::string(kKeysOption))) {
    AddKey(assignment, given[std::string(kKeysOption)]);
    return;
  }
  const std::string option = ResolveOption(experiment, name);
  if (!given.emplace(option, assignment.substr(equals + 1)).second) {
    throw Error::Format("--set {}: --{} is given twice", assignment, option);
  }
}

}  // namespace numsim::experiments
