// The only file that includes toml++, whose header takes longer to compile than all other code
// here.
#include "numsim/config/toml_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/config/internal/toml_text.h"

// toml++ asserts what documents can break, and then reports it well. Without assertions clang would
// assume that they hold: its parser is compiled as if with assertions, which do nothing.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace numsim {
namespace {

using Kind = ConfigValue::Kind;

struct LinedEntry {
  ConfigEntry entry;
  toml::source_position begin;
};

class Flattener {
 public:
  explicit Flattener(std::string_view name) : name_(name) {}

  void Add(const std::string& key, const toml::node& node, int depth = 0) {
    if (depth > kMostKeyParts) {
      throw Error::Format(
          "{}:{}: a key of more than {} parts", name_, node.source().begin.line, kMostKeyParts);
    }
    if (const toml::table* table = node.as_table()) {
      if (!key.empty()) Put(key, node, Kind::kTable);
      for (const auto& [part, value] : *table) {
        CheckPart(part.str(), part.source().begin.line);
        Add(key.empty() ? std::string(part.str()) : fmt::format("{}.{}", key, part.str()),
            value,
            depth + 1);
      }
    } else if (const toml::array* array = node.as_array()) {
      AddArray(key, *array, depth);
    } else {
      AddValue(key, node);
    }
  }

  // Returns the entries in the order of the document; toml++ sorts by name.
  std::vector<ConfigEntry> Take() {
    std::stable_sort(
        entries_.begin(), entries_.end(), [](const LinedEntry& x, const LinedEntry& y) {
          return std::pair(x.begin.line, x.begin.column) < std::pair(y.begin.line, y.begin.column);
        });
    std::vector<ConfigEntry> result;
    for (LinedEntry& entry : entries_) result.push_back(std::move(entry.entry));
    return result;
  }

 private:
  // Parts are joined by dots, and a part in quotes must not be taken for several or for none.
  void CheckPart(std::string_view part, size_t line) const {
    if (!part.empty() && part.find('.') == part.npos) return;
    throw Error::Format("{}:{}: '{}' in quotes is one part of a key; expected a name without dots",
                        name_,
                        line,
                        Printable(part));
  }

  ConfigValue& Put(const std::string& key, const toml::node& node, Kind kind) {
    LinedEntry added;
    added.begin = node.source().begin;
    added.entry.key = key;
    added.entry.value.kind = kind;
    added.entry.place = fmt::format("{}:{}", name_, added.begin.line);
    entries_.push_back(std::move(added));
    return entries_.back().entry.value;
  }

  void AddArray(const std::string& key, const toml::array& array, int depth) {
    bool tables = !array.empty();
    for (const toml::node& element : array) tables = tables && element.is_table();
    if (!tables) {
      ConfigValue& value = Put(key, array, Kind::kArray);
      value.whole = static_cast<int64_t>(array.size());
      for (const toml::node& element : array) {
        if (!element.is_array() && !element.is_table()) value.elements.push_back(ValueOf(element));
      }
      return;
    }
    size_t index = 0;
    for (const toml::node& element : array) {
      Add(fmt::format("{}.{}", key, index++), element, depth + 1);
    }
  }

  void AddValue(const std::string& key, const toml::node& node) {
    Put(key, node, Kind::kDate) = ValueOf(node);
  }

  // Returns the value of a node that is neither an array nor a table.
  ConfigValue ValueOf(const toml::node& node) const {
    ConfigValue value;
    value.kind = Kind::kDate;
    if (const auto* flag = node.as_boolean()) {
      value.kind = Kind::kFlag;
      value.flag = flag->get();
    } else if (const auto* whole = node.as_integer()) {
      value.kind = Kind::kWhole;
      value.whole = whole->get();
    } else if (const auto* real = node.as_floating_point()) {
      value.kind = Kind::kReal;
      value.real = real->get();
    } else if (const auto* text = node.as_string()) {
      value.kind = Kind::kText;
      value.text = text->get();
      if (value.text.find('\0') != std::string::npos) {  // would end the name of a file
        throw Error::Format("{}:{}: text with the character U+0000, which numsim does not take",
                            name_,
                            node.source().begin.line);
      }
    }
    return value;
  }

  std::string name_;
  std::vector<LinedEntry> entries_;
};

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Returns a table with the key "value": the parsed TOML value, or the text itself if it is not
// TOML.
toml::table ParseBare(std::string_view value) {
  try {
    toml::table table;
    if (FindNonAscii(value) == value.npos) table = toml::parse(fmt::format("value = {}", value));
    if (table.size() == 1) return table;  // else the value has a line break and another key
  } catch (const toml::parse_error&) {
    // Not TOML: text without quotes.
  }
  toml::table table;
  table.insert("value", std::string(value));
  return table;
}

}  // namespace

std::vector<ConfigEntry> ReadToml(std::string_view document, std::string_view name) {
  CheckTomlText(document, name);
  Flattener flattener(name);
  try {
    const toml::table table = toml::parse(document);
    flattener.Add("", table);
  } catch (const toml::parse_error& error) {
    throw Error::Format("{}:{}: {}", name, error.source().begin.line, error.description());
  }
  return flattener.Take();
}

std::vector<ConfigEntry> ReadOverride(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view key = Trim(text.substr(0, equals));
  if (equals == std::string_view::npos || key.empty()) {
    throw Error::Format("--set {}: is not of the form KEY=VALUE", text);
  }
  const std::string_view value = Trim(text.substr(equals + 1));
  Flattener flattener("--set");
  const toml::table table = ParseBare(value);
  flattener.Add(std::string(key), *table.get("value"));
  std::vector<ConfigEntry> entries = flattener.Take();
  for (ConfigEntry& entry : entries) {
    entry.place = "--set";
    entry.from_command_line = true;
    if (entry.key == key) entry.value.bare = std::string(value);
  }
  return entries;
}

}  // namespace numsim
