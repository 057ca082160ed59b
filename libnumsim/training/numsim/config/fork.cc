#include "numsim/config/fork.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr std::string_view kFree[] = {"linear.",
                                      "storage.",
                                      "stress.",
                                      "optimizer.",
                                      "schedule.",
                                      "loss_scaler.",
                                      "model.mlp",
                                      "model.patch_dropout",
                                      "model.norm_epsilon"};
constexpr const char* kFreeText =
    "a fork keeps it; expected a key of linear, storage, stress, optimizer, schedule or loss_scaler, "
    "or model.mlp, model.patch_dropout or model.norm_epsilon";
constexpr std::string_view kLinear = "linear.";

std::string_view KeyOf(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Returns the assignment of a value of ConfigKey, without quotes where a text needs none.
std::string Assignment(const ConfigKey& key) {
  std::string_view value = key.value;
  const bool quoted = value.size() > 2 && value.starts_with('"') && value.ends_with('"');
  const std::string_view inner = quoted ? value.substr(1, value.size() - 2) : value;
  if (quoted && inner.find_first_of("\"\\") == inner.npos) value = inner;
  return fmt::format("{}={}", key.name, value);
}

void RequireFree(std::string_view key) {
  const auto begins = [&](std::string_view name) {
    return name.ends_with('.') ? key.starts_with(name) : key == name;
  };
  if (std::ranges::none_of(kFree, begins)) throw KeyError(std::string(key), kFreeText);
}

// adamw and stable-adamw have the same states; those of other optimisers differ.
void CheckOptimizers(const OptimizerConfig& before, const OptimizerConfig& after) {
  const auto is_adam = [](const OptimizerConfig& config) {
    return config.kind == OptimizerKind::kAdamW || config.kind == OptimizerKind::kStableAdamW;
  };
  if (before.kind == after.kind || (is_adam(before) && is_adam(after))) return;
  throw KeyError::Format("optimizer.kind",
                         "{} cannot go on from the states of {}",
                         ToString(after.kind),
                         ToString(before.kind));
}

std::map<std::string, std::string> Values(const TrainConfig& config) {
  std::map<std::string, std::string> values;
  for (const ConfigKey& key : ConfigKeys(config)) values[key.name] = key.value;
  return values;
}

// Returns the configuration of the baseline, unchecked. Throws Error as SetConfigKeys does.
TrainConfig Unchecked(const TrainConfig& config) {
  TrainConfig baseline = config;
  baseline.fork = {};
  const auto& before = config.fork.before;
  const auto of_linear = [](const std::string& text) { return text.starts_with(kLinear); };
  if (std::ranges::any_of(before, of_linear)) baseline.linear = {};
  SetConfigKeys(before, baseline);
  return baseline;
}

}  // namespace

TrainConfig BaselineOf(const TrainConfig& config) { return Unchecked(config); }

bool HasSameLinear(const TrainConfig& a, const TrainConfig& b) {
  const auto text = [](const TrainConfig& config) {
    std::string lines;
    for (const ConfigKey& key : ConfigKeys(config)) {
      if (key.name.starts_with(kLinear)) lines += key.name + "=" + key.value + "\n";
    }
    return lines;
  };
  return text(a) == text(b);
}

std::vector<std::string> KeysBefore(const TrainConfig& baseline, const TrainConfig& config) {
  CheckOptimizers(baseline.optimizer, config.optimizer);
  TrainConfig from = config;
  const bool same_linear = HasSameLinear(baseline, config);
  if (!same_linear) from.linear = {};
  const std::map<std::string, std::string> values = Values(from);
  std::vector<std::string> keys;
  for (const ConfigKey& key : ConfigKeys(baseline)) {
    const auto found = values.find(key.name);
    if ((found != values.end() && found->second == key.value) || IsRecordKey(key.name)) continue;
    RequireFree(key.name);
    keys.push_back(Assignment(key));
  }
  if (!same_linear &&
      std::ranges::none_of(keys, [](const std::string& key) { return key.starts_with(kLinear); })) {
    // The baseline has the defaults of [linear], which one key has to say.
    for (const ConfigKey& key : ConfigKeys(baseline)) {
      if (key.name == "linear.kind") keys.push_back(Assignment(key));
    }
  }
  return keys;
}

void CheckFork(const TrainConfig& config) {
  const ForkConfig& fork = config.fork;
  if (fork.steps == 0) {
    if (fork.before.empty()) return;
    throw KeyError("fork.before", "has no effect without fork.steps");
  }
  if (fork.steps >= config.train.steps) {
    throw KeyError::Format("fork.steps",
                           "{} is not below train.steps = {}: nothing would be left to train",
                           fork.steps,
                           config.train.steps);
  }
  try {
    for (const std::string& assignment : fork.before) RequireFree(KeyOf(assignment));
    const TrainConfig baseline = Unchecked(config);
    CheckTrainConfig(baseline);
    CheckOptimizers(baseline.optimizer, config.optimizer);
  } catch (const Error& error) {
    constexpr std::string_view kSet = "--set: ";
    std::string_view text = error.what();
    if (text.starts_with(kSet)) text.remove_prefix(kSet.size());
    throw KeyError("fork.before", std::string(text));
  }
}

}  // namespace numsim
