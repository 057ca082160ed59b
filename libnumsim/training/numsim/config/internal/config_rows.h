// Rows of the table of keys. A row describes a key completely: its name, how its value is read and
// written, its meaning and its valid values. Rows are created for the struct that has the field,
// and placed under a section with InSection.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/config/config_value.h"
#include "numsim/formats/format_table.h"

namespace numsim {

template <typename Owner>
struct ConfigRow {
  std::string name;
  std::string meaning;  // one line, without the valid values
  std::string valid;
  std::function<void(Owner&, const ConfigValue&)> read;  // throws Error without the key's name
  std::function<std::string(const Owner&)> write;        // TOML
  bool is_path = false;
};
template <typename Owner>
using ConfigRows = std::vector<ConfigRow<Owner>>;

inline constexpr uint64_t kAnyWhole = std::numeric_limits<uint64_t>::max();
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();
inline constexpr RealRange kAtLeastZero{0, false, kNoLimit, false};
inline constexpr RealRange kAboveZero{0, true, kNoLimit, false};
inline constexpr RealRange kZeroToOne{0, false, 1, false};
inline constexpr RealRange kZeroToBelowOne{0, false, 1, true};

// Returns a row for text. `read` converts the text to the field's type and throws Error for invalid
// text; `write` converts back, without quotes.
template <typename Owner, typename Value, typename Read, typename Write>
ConfigRow<Owner> TextRow(std::string name,
                         Value Owner::*field,
                         Read read,
                         Write write,
                         std::string meaning,
                         std::string valid) {
  return {
      std::move(name),
      std::move(meaning),
      std::move(valid),
      [field, read](Owner& owner, const ConfigValue& value) {
        owner.*field = read(ReadText(value));
      },
      [field, write](const Owner& owner) { return QuotedText(std::string(write(owner.*field))); }};
}

template <typename Owner>
ConfigRow<Owner> TextRow(std::string name,
                         std::string Owner::*field,
                         std::string meaning,
                         std::string valid) {
  const auto same = [](const std::string& text) { return text; };
  return TextRow(std::move(name), field, same, same, std::move(meaning), std::move(valid));
}

// Returns a row for an array of texts, each converted as by TextRow.
template <typename Owner, typename Value, typename Read, typename Write>
ConfigRow<Owner> TextsRow(std::string name,
                          std::vector<Value> Owner::*field,
                          Read read,
                          Write write,
                          std::string meaning,
                          std::string valid) {
  return {std::move(name),
          std::move(meaning),
          std::move(valid),
          [field, read](Owner& owner, const ConfigValue& value) {
            std::vector<Value> values;
            for (const std::string& text : ReadTexts(value)) values.push_back(read(text));
            owner.*field = std::move(values);
          },
          [field, write](const Owner& owner) {
            std::vector<std::string> texts;
            for (const Value& value : owner.*field) texts.emplace_back(write(value));
            return QuotedTexts(texts);
          }};
}

// Returns a row for an enumeration whose values have these names.
template <typename Owner, typename Enum>
ConfigRow<Owner> ChoiceRow(std::string name,
                           Enum Owner::*field,
                           Enum (*parse)(std::string_view),
                           std::string names,
                           std::string meaning) {
  const auto write = [](Enum value) { return ToString(value); };
  return TextRow(std::move(name), field, parse, write, std::move(meaning), std::move(names));
}

template <typename Owner>
ConfigRow<Owner> FormatRow(std::string name, Format Owner::*field, std::string meaning) {
  const auto write = [](const Format& format) { return format.name; };
  return TextRow(
      std::move(name), field, ParseFormat, write, std::move(meaning), "a format (formats.md)");
}

template <typename Owner>
ConfigRow<Owner> PathRow(std::string name,
                         std::filesystem::path Owner::*field,
                         std::string meaning) {
  // Absolute, so that it reads back to the same path from any folder.
  const auto write = [](const std::filesystem::path& path) {
    return path.empty() ? "" : std::filesystem::absolute(path).lexically_normal().string();
  };
  const auto read = [](const std::string& text) { return std::filesystem::path(text); };
  ConfigRow<Owner> row = TextRow(std::move(name), field, read, write, std::move(meaning), "a path");
  row.is_path = true;
  return row;
}

template <typename Owner>
ConfigRow<Owner> FlagRow(std::string name, bool Owner::*field, std::string meaning) {
  return {std::move(name),
          std::move(meaning),
          "true, false",
          [field](Owner& owner, const ConfigValue& value) { owner.*field = ReadFlag(value); },
          [field](const Owner& owner) { return FlagText(owner.*field); }};
}

// Returns a row for a field of type size_t or uint64_t.
template <typename Owner, typename Whole>
ConfigRow<Owner> WholeRow(std::string name,
                          Whole Owner::*field,
                          uint64_t low,
                          std::string meaning,
                          uint64_t high = kAnyWhole) {
  static_assert(std::numeric_limits<Whole>::max() == kAnyWhole);
  std::string valid = fmt::format("whole number >= {}", low);
  if (high != kAnyWhole) valid += fmt::format(", <= {}", high);
  return {std::move(name),
          std::move(meaning),
          std::move(valid),
          [field, low, high](Owner& owner, const ConfigValue& value) {
            owner.*field = ReadWhole(value, low, high);
          },
          [field](const Owner& owner) { return WholeText(owner.*field); }};
}

template <typename Owner>
ConfigRow<Owner> RealRow(std::string name,
                         double Owner::*field,
                         const RealRange& range,
                         std::string meaning) {
  return {std::move(name),
          std::move(meaning),
          range.Text(),
          [field, range](Owner& owner, const ConfigValue& value) {
            owner.*field = ReadReal(value, range);
          },
          [field](const Owner& owner) { return RealText(owner.*field); }};
}

// Adds the rows of a member `part` to the rows of the struct that contains it, with names prefixed
// by "SECTION." (no prefix if `section` is empty).
template <typename Outer, typename Inner>
void InSection(ConfigRows<Outer>& whole,
               const std::string& section,
               Inner Outer::*part,
               const ConfigRows<Inner>& rows) {
  for (const ConfigRow<Inner>& row : rows) {
    whole.push_back({section.empty() ? row.name : section + "." + row.name,
                     row.meaning,
                     row.valid,
                     [read = row.read, part](Outer& outer, const ConfigValue& value) {
                       read(outer.*part, value);
                     },
                     [write = row.write, part](const Outer& outer) { return write(outer.*part); },
                     row.is_path});
  }
}

}  // namespace numsim
