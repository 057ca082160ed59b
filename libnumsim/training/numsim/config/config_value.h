// Values of a configuration as written, before they are interpreted by a key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

struct ConfigValue {
  enum class Kind : uint8_t { kFlag, kWhole, kReal, kText, kDate, kArray, kTable };
  Kind kind = Kind::kText;
  bool flag = false;
  int64_t whole = 0;  // kArray: the number of elements
  double real = 0;
  std::string text;
  std::vector<ConfigValue> elements = {};  // kArray: of an array of values, not of arrays or tables
  // The characters of a value given on the command line. A key that expects text uses them, so that
  // text needs no quotes there.
  std::optional<std::string> bare;
};
// Returns "true or false", "a whole number", ...
std::string_view Describe(ConfigValue::Kind kind);

// A value and its key, e.g. "optimizer.stable.global". Elements of an array of tables are numbered:
// "linear.override.0.layers". Every table, even an empty one, has an entry of its own before the
// entries of its keys.
struct ConfigEntry {
  std::string key;
  ConfigValue value;
  std::string place;  // where the value was given, for messages: "FILE:LINE", "--set"
  bool from_command_line = false;
};

// A range of finite numbers. Text() returns e.g. "0 < x <= 1".
struct RealRange {
  double low;
  bool low_open;
  double high;  // infinite: no upper bound
  bool high_open;

  bool Holds(double x) const;
  std::string Text() const;
};

// Convert a value to the type that a key expects. Throw Error, without naming the key, if the value
// has another type or is out of range. ReadReal also accepts whole numbers. Whole numbers above
// 2^63 - 1, which TOML does not have, are given as text.
bool ReadFlag(const ConfigValue& value);
uint64_t ReadWhole(const ConfigValue& value, uint64_t low, uint64_t high);
int64_t ReadSigned(const ConfigValue& value, int64_t low, int64_t high);
double ReadReal(const ConfigValue& value, const RealRange& range);
std::string ReadText(const ConfigValue& value);
// Reads an array of texts. A single text stands for an array of it, and an empty text for none.
std::vector<std::string> ReadTexts(const ConfigValue& value);

// Return TOML that reads back to the same value.
std::string FlagText(bool flag);
std::string WholeText(uint64_t whole);
std::string RealText(double real);
std::string QuotedText(std::string_view text);
std::string QuotedTexts(const std::vector<std::string>& texts);

}  // namespace numsim
