// Writes a configuration as a list of keys and as TOML.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "numsim/config/config.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/formats/format_names.h"

namespace numsim {
namespace {

template <typename Owner>
void AppendKeys(const ConfigRows<Owner>& rows,
                const std::string& prefix,
                const Owner& owner,
                std::vector<ConfigKey>& keys) {
  for (const ConfigRow<Owner>& row : rows) {
    keys.push_back(
        {prefix + row.name, row.write(owner), fmt::format("{} ({})", row.meaning, row.valid)});
  }
}

std::string SectionOf(const std::string& name) { return name.substr(0, name.find('.')); }

template <typename Owner>
void AppendToml(const ConfigRow<Owner>& row,
                const std::string& name,
                const Owner& owner,
                std::string& toml) {
  toml += fmt::format("{} = {}\n", name, row.write(owner));
}

}  // namespace

std::vector<ConfigKey> ConfigKeys(const TrainConfig& config) {
  std::vector<ConfigKey> keys;
  AppendKeys(TrainConfigRows(), "", config, keys);
  for (size_t i = 0; i < config.linear.overrides.size(); ++i) {
    const std::string prefix = fmt::format("{}.{}.", kOverrideSection, i);
    AppendKeys(LinearOverrideRows(), prefix, config.linear.overrides[i], keys);
  }
  return keys;
}

bool IsRecordKey(std::string_view key) {
  return key.starts_with("telemetry.") || key.starts_with("what_if.") ||
         key.starts_with("checkpoint.") || key == "train.valid_every";
}

std::string WriteTrainConfig(const TrainConfig& config) {
  std::string toml, section;
  const bool forks = config.fork.steps != 0 || !config.fork.before.empty();
  const bool usual_attention = config.model.attention == AttentionPrecision();
  for (const ConfigRow<TrainConfig>& row : TrainConfigRows()) {
    // A training without a fork, or in the usual attention, has the text that it had before there were
    // others.
    if (!forks && SectionOf(row.name) == "fork") continue;
    if (usual_attention && SectionOf(row.name) == "attention") continue;
    if (SectionOf(row.name) != section) {
      toml += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", SectionOf(row.name));
      section = SectionOf(row.name);
    }
    AppendToml(row, row.name.substr(section.size() + 1), config, toml);
  }
  for (const LinearOverride& over : config.linear.overrides) {
    toml += fmt::format("\n[[{}]]\n", kOverrideSection);
    for (const ConfigRow<LinearOverride>& row : LinearOverrideRows()) {
      AppendToml(row, row.name, over, toml);
    }
  }
  // A text that has another meaning with former names says that its names are today's.
  if (FromFormerNames(toml) == toml) return toml;
  return fmt::format("{} = {}\n\n{}", kNamesKey, kTodaysNames, toml);
}

}  // namespace numsim
