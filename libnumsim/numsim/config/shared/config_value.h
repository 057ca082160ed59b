// Values as a configuration states them, before a key gives them a meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace numsim {

struct ConfigValue {
  enum class Kind : uint8_t { kFlag, kWhole, kReal, kText, kDate, kArray, kTable };
  Kind kind = Kind::kText;
  bool flag = false;
  int64_t whole = 0;  // kArray: how many elements
  double real = 0;
  std::string text;
  // The characters of a value of the command line. A key that wants text takes them, so that
  // nobody needs quotes there.
  std::optional<std::string> bare;
};
// "true or false", "a whole number", ...
std::string_view Describe(ConfigValue::Kind kind);

// A value under its key, "optimizer.stable.global". An array of tables counts them:
// "linear.override.0.layers". A table, also an empty one, is an entry of its own before its keys.
struct ConfigEntry {
  std::string key;
  ConfigValue value;
  std::string place;  // for messages: "FILE:LINE", "--set"
  bool from_command_line = false;
};

// Numbers between two bounds, as text "0 < x <= 1".
struct RealRange {
  double low;
  bool low_open;
  double high;  // infinite: none
  bool high_open;

  bool Holds(double x) const;
  std::string Text() const;
};

// What a key makes of a value. They throw Error, which does not name the key: a value of another
// type or out of range. Whole numbers stand for reals. Whole numbers above 2^63 - 1, which TOML
// does not have, are text.
bool ReadFlag(const ConfigValue& value);
uint64_t ReadWhole(const ConfigValue& value, uint64_t low, uint64_t high);
int64_t ReadSigned(const ConfigValue& value, int64_t low, int64_t high);
double ReadReal(const ConfigValue& value, const RealRange& range);
std::string ReadText(const ConfigValue& value);

// TOML that reads back to the same value.
std::string FlagText(bool flag);
std::string WholeText(uint64_t whole);
std::string RealText(double real);
std::string QuotedText(std::string_view text);

}  // namespace numsim
