#include "numsim/train/internal/continuation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "numsim/base/error.h"

namespace numsim {
namespace {

// Keys that do not affect results.
constexpr std::string_view kFree[] = {"data.path", "data.valid_path", "checkpoint.every"};

bool IsFree(std::string_view key) {
  return std::find(std::begin(kFree), std::end(kFree), key) != std::end(kFree);
}

const ConfigKey* Find(const std::vector<ConfigKey>& keys, std::string_view name) {
  const auto found = std::find_if(
      keys.begin(), keys.end(), [&](const ConfigKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

[[noreturn]] void FailOn(std::string_view key, const ConfigKey* ours, const ConfigKey* theirs) {
  const auto text = [](const ConfigKey* entry) {
    return entry == nullptr ? std::string("not set") : entry->value;
  };
  throw Error::Format(
      "the configuration differs: {} is now {} and was {}", key, text(ours), text(theirs));
}

}  // namespace

void CheckContinues(const TrainConfig& ours, std::string_view theirs) {
  const TrainConfig began =
      ParseTrainConfig(theirs, "configuration of the checkpoint", {}, {}, DocumentNames::kFormer);
  if (ours.train.steps < began.train.steps) {
    throw Error::Format("train.steps is {} and was {}: it may only be increased",
                        ours.train.steps,
                        began.train.steps);
  }
  TrainConfig compared = ours;
  compared.train.steps = began.train.steps;
  const std::vector<ConfigKey> now = ConfigKeys(compared), then = ConfigKeys(began);
  for (const ConfigKey& key : now) {
    const ConfigKey* const other = Find(then, key.name);
    if (IsFree(key.name) || (other != nullptr && other->value == key.value)) continue;
    FailOn(key.name, &key, other);
  }
  for (const ConfigKey& key : then) {
    if (!IsFree(key.name) && Find(now, key.name) == nullptr) FailOn(key.name, nullptr, &key);
  }
}

}  // namespace numsim
