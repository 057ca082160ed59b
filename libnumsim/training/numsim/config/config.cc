// Parses configurations: applies the entries of a file and of the command line row by row.
#include "numsim/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "numsim/base/error.h"
#include "numsim/config/internal/config_names.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/config/toml_document.h"
#include "numsim/formats/format_names.h"
#include "numsim/io/input_file.h"

namespace numsim {
namespace {

using Kind = ConfigValue::Kind;

[[noreturn]] void Fail(const ConfigEntry& entry, std::string_view message) {
  throw Error::Format("{}: {}: {}", entry.place, entry.key, message);
}

// The parsed form of a key of an override: its number and the rest of the key. ParseOverrideKey
// returns nullopt for other keys.
struct OverrideKey {
  size_t number;
  std::string_view name;  // empty: the table itself
};
std::optional<OverrideKey> ParseOverrideKey(std::string_view key) {
  if (!key.starts_with(kOverrideSection)) return std::nullopt;
  key.remove_prefix(kOverrideSection.size());
  if (key.empty() || key[0] != '.') return std::nullopt;
  key.remove_prefix(1);
  OverrideKey result{0, {}};
  const std::from_chars_result read =
      std::from_chars(key.data(), key.data() + key.size(), result.number);
  const size_t digits = static_cast<size_t>(read.ptr - key.data());
  if (read.ec != std::errc() || (key[0] == '0' && digits > 1)) return std::nullopt;
  key.remove_prefix(digits);
  if (key.empty()) return result;
  if (key.size() < 2 || key[0] != '.') return std::nullopt;
  result.name = key.substr(1);
  return result;
}

template <typename Owner>
void AppendNames(const ConfigRows<Owner>& rows,
                 std::string_view prefix,
                 std::vector<std::string>& names) {
  for (const ConfigRow<Owner>& row : rows) names.push_back(fmt::format("{}{}", prefix, row.name));
}

// Returns the known names that may be suggested for an unknown key.
std::vector<std::string> KnownNames(std::string_view key) {
  std::vector<std::string> names = {std::string(kPresetKey)};
  AppendNames(TrainConfigRows(), "", names);
  if (key.starts_with(kOverrideSection)) {
    const std::optional<OverrideKey> parsed = ParseOverrideKey(key);
    const size_t number = parsed.has_value() ? parsed->number : 0;
    AppendNames(LinearOverrideRows(), fmt::format("{}.{}.", kOverrideSection, number), names);
  }
  return names;
}

// Returns the sections of all keys: "optimizer", "optimizer.stable", ...
std::vector<std::string> KnownSections() {
  std::vector<std::string> sections;
  for (const ConfigRow<TrainConfig>& row : TrainConfigRows()) {
    std::string section = row.name.substr(0, row.name.rfind('.'));
    const bool known = std::find(sections.begin(), sections.end(), section) != sections.end();
    if (!known) sections.push_back(std::move(section));
  }
  sections.emplace_back(kOverrideSection);
  return sections;
}

// Returns the message about an entry that no row has.
std::string UnknownName(const ConfigEntry& entry) {
  const bool section = entry.value.kind == Kind::kTable;
  const std::string hint =
      section ? SectionHint(entry.key, KnownSections()) : KeyHint(entry.key, KnownNames(entry.key));
  return fmt::format("there is no such {}; {}",
                     section ? "section" : "key",
                     hint.empty() ? "`numsim train --describe-config` lists all keys"
                                  : fmt::format("did you mean {}?", hint));
}

// The entries with distinct keys. Entries of the command line replace those of the document.
class Entries {
 public:
  Entries(std::vector<ConfigEntry> document, const std::vector<std::string>& overrides) {
    for (ConfigEntry& entry : document) Add(std::move(entry));
    for (const std::string& text : overrides) {
      for (ConfigEntry& entry : ReadOverride(text)) Add(std::move(entry));
    }
  }

  const ConfigEntry* Find(const std::string& key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &entries_[found->second];
  }

  // Throws Error for the first key that no row has.
  void CheckKeys() const {
    for (const ConfigEntry& entry : entries_) {
      if (!IsKnown(entry)) Fail(entry, UnknownName(entry));
    }
  }

  // Returns the number of overrides after the keys are applied, if there are `count` overrides
  // before.
  size_t OverrideCount(size_t count) const {
    for (const ConfigEntry& entry : entries_) {
      const std::optional<OverrideKey> key = ParseOverrideKey(entry.key);
      if (!key.has_value()) continue;
      if (key->number > count) {
        Fail(entry, fmt::format("the next override has number {}", count));
      }
      count = std::max(count, key->number + 1);
    }
    return count;
  }

  // Returns whether names of formats in the document have their former meaning; `absent` if it does
  // not say.
  bool HasFormerNames(DocumentNames absent) const {
    const ConfigEntry* const entry = Find(std::string(kNamesKey));
    if (entry == nullptr) return absent == DocumentNames::kFormer || HasNearlyAllKeys();
    if (entry->from_command_line) Fail(*entry, "is a key of files alone");
    if (entry->value.kind != Kind::kWhole ||
        (entry->value.whole != kFormerNames && entry->value.whole != kTodaysNames)) {
      Fail(*entry, fmt::format("expected {} or {}", kFormerNames, kTodaysNames));
    }
    return entry->value.whole == kFormerNames;
  }

  // Returns true for a document that numsim wrote, today or before it had the newest keys.
  bool HasNearlyAllKeys() const {
    size_t given = 0;
    for (const ConfigRow<TrainConfig>& row : TrainConfigRows()) {
      const ConfigEntry* const entry = Find(row.name);
      given += entry != nullptr && !entry->from_command_line;
    }
    return 10 * given >= 9 * TrainConfigRows().size();
  }

  // Gives names of formats in the values of the document, except paths, today's form.
  void ReplaceFormerNames() {
    for (ConfigEntry& entry : entries_) {
      if (entry.from_command_line || entry.key.ends_with("path")) continue;
      entry.value.text = FromFormerNames(entry.value.text);
      for (ConfigValue& element : entry.value.elements) {
        element.text = FromFormerNames(element.text);
      }
    }
  }

  bool DocumentHasOverrides() const {
    for (const ConfigEntry& entry : entries_) {
      if (!entry.from_command_line && entry.key.starts_with(kOverrideSection)) return true;
    }
    return false;
  }

 private:
  void Add(ConfigEntry entry) {
    const auto [place, added] = by_key_.emplace(entry.key, entries_.size());
    if (added) {
      entries_.push_back(std::move(entry));
      return;
    }
    ConfigEntry& present = entries_[place->second];
    if (!entry.from_command_line) Fail(entry, fmt::format("is already set at {}", present.place));
    present = std::move(entry);
  }

  bool IsKnown(const ConfigEntry& entry) const {
    const bool table = entry.value.kind == Kind::kTable;
    if (entry.key == kPresetKey || entry.key == kRecipeKey || entry.key == kNamesKey) return true;
    if (entry.key == kOverrideSection) {
      const bool empty = entry.value.kind == Kind::kArray && entry.value.whole == 0;
      if (!empty) Fail(entry, "must be tables, [[linear.override]]");
      return true;
    }
    if (const std::optional<OverrideKey> key = ParseOverrideKey(entry.key)) {
      if (key->name.empty()) {
        if (!table) Fail(entry, "must be a table");
        return true;
      }
      return HasName(LinearOverrideRows(), key->name, entry);
    }
    return HasName(TrainConfigRows(), entry.key, entry);
  }

  // Returns true if `name` is a key or, for a table, a section of the rows.
  template <typename Owner>
  static bool HasName(const ConfigRows<Owner>& rows,
                      std::string_view name,
                      const ConfigEntry& entry) {
    const std::string section = fmt::format("{}.", name);
    const bool table = entry.value.kind == Kind::kTable;
    for (const ConfigRow<Owner>& row : rows) {
      if (row.name == name && table) Fail(entry, "is a key, not a section");
      if (row.name == name) return true;
      if (!row.name.starts_with(section)) continue;
      if (!table) Fail(entry, "is a section, not a key");
      return true;
    }
    return false;
  }

  std::vector<ConfigEntry> entries_;
  std::map<std::string, size_t> by_key_;
};

// Reads the values of all rows that have an entry named `prefix` + row name into `owner`.
template <typename Owner>
void ReadRows(const ConfigRows<Owner>& rows,
              const std::string& prefix,
              const Entries& entries,
              const std::filesystem::path& folder,
              Owner& owner) {
  for (const ConfigRow<Owner>& row : rows) {
    const ConfigEntry* const entry = entries.Find(prefix + row.name);
    if (entry == nullptr) continue;
    ConfigValue value = entry->value;
    try {
      if (row.is_path) {
        std::filesystem::path path = ReadText(value);
        if (!path.empty() && !entry->from_command_line) path = folder / path;
        if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal();
        value.kind = Kind::kText;
        value.text = path.string();
      }
      row.read(owner, value);
    } catch (const Error& error) {
      Fail(*entry, error.what());
    }
  }
}

TrainConfig StartingPoint(const Entries& entries) {
  const ConfigEntry* const preset = entries.Find(std::string(kPresetKey));
  if (preset == nullptr) return {};
  try {
    return MakeTrainPreset(ReadText(preset->value));
  } catch (const Error& error) {
    Fail(*preset, error.what());
  }
}

void ReadOverrides(const Entries& entries,
                   const std::filesystem::path& folder,
                   std::vector<LinearOverride>& overrides) {
  if (entries.DocumentHasOverrides()) overrides.clear();  // drops the preset's overrides
  overrides.resize(entries.OverrideCount(overrides.size()));
  for (size_t i = 0; i < overrides.size(); ++i) {
    const std::string table = fmt::format("{}.{}", kOverrideSection, i);
    ReadRows(LinearOverrideRows(), table + ".", entries, folder, overrides[i]);
    if (!overrides[i].layers.empty()) continue;
    const ConfigEntry* const entry = entries.Find(table);
    throw Error::Format("{}: {}.layers: is missing", entry ? entry->place : "--set", table);
  }
}

// Reads all entries but `preset` into `config`.
void ReadEntries(const Entries& entries, const std::filesystem::path& folder, TrainConfig& config) {
  if (const ConfigEntry* const recipe = entries.Find(std::string(kRecipeKey))) {
    try {
      ApplyTrainRecipe(ReadText(recipe->value), config);
    } catch (const Error& error) {
      Fail(*recipe, error.what());
    }
  }
  ReadRows(TrainConfigRows(), "", entries, folder, config);
  ReadOverrides(entries, folder, config.linear.overrides);
}

// Reads all entries into `config`. Throws Error for a preset.
void ReadKeys(const Entries& entries, const std::filesystem::path& folder, TrainConfig& config) {
  entries.CheckKeys();
  if (const ConfigEntry* const preset = entries.Find(std::string(kPresetKey))) {
    Fail(*preset, "replaces every key, so only `numsim train` takes it");
  }
  if (const ConfigEntry* const recipe = entries.Find(std::string(kRecipeKey))) {
    Fail(*recipe, "replaces all of [linear], so only `numsim train` takes it");
  }
  ReadEntries(entries, folder, config);
}

// Returns the error, prefixed by the place where its key was given.
Error Located(const KeyError& error, const Entries& entries, std::string_view name) {
  const ConfigEntry* const entry = entries.Find(error.key());
  return Error::Format("{}: {}", entry == nullptr ? name : entry->place, error.what());
}

// The config.toml of a run, beside its train.csv, was written by numsim: without the key `names`, with
// former names or with none that could be misread.
DocumentNames NamesIn(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool of_run = path.filename() == "config.toml" &&
                      std::filesystem::exists(path.parent_path() / "train.csv", ignored);
  return of_run ? DocumentNames::kFormer : DocumentNames::kTodays;
}

}  // namespace

TrainConfig ParseTrainConfig(std::string_view toml,
                             std::string_view name,
                             const std::filesystem::path& folder,
                             const std::vector<std::string>& overrides,
                             DocumentNames names) {
  Entries entries(ReadToml(toml, name), overrides);
  entries.CheckKeys();
  if (entries.HasFormerNames(names)) entries.ReplaceFormerNames();
  TrainConfig config = StartingPoint(entries);
  ReadEntries(entries, folder, config);
  config.schedule.steps = config.train.steps;
  try {
    CheckTrainConfig(config);
  } catch (const KeyError& error) {
    throw Located(error, entries, name);
  }
  return config;
}

void SetConfigKeys(const std::vector<std::string>& overrides, TrainConfig& config) {
  ReadKeys(Entries({}, overrides), {}, config);
}

std::vector<std::string> ReadConfigKeys(const std::filesystem::path& path) {
  Entries entries(ReadToml(ReadText(path), path.string()), {});
  if (entries.HasFormerNames(NamesIn(path))) entries.ReplaceFormerNames();
  TrainConfig config;
  ReadKeys(entries, path.parent_path(), config);
  std::vector<std::string> overrides;
  for (const ConfigKey& key : ConfigKeys(config)) {
    const ConfigEntry* const entry = entries.Find(key.name);
    if (entry == nullptr) continue;
    // Text goes without its quotes. Paths have become absolute in `config`.
    const bool text = entry->value.kind == Kind::kText;
    const std::string value =
        text ? ReadOverride("text=" + key.value).front().value.text : key.value;
    overrides.push_back(fmt::format("{}={}", key.name, value));
  }
  return overrides;
}

TrainConfig ReadTrainConfig(const std::filesystem::path& path,
                            const std::vector<std::string>& overrides) {
  return ParseTrainConfig(
      ReadText(path), path.string(), path.parent_path(), overrides, NamesIn(path));
}

}  // namespace numsim
