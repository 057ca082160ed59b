#include "numsim/config/config_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "numsim/base/error.h"

namespace numsim {
namespace {

using Kind = ConfigValue::Kind;

constexpr uint64_t kLargestOfToml = std::numeric_limits<int64_t>::max();

[[noreturn]] void WrongType(const ConfigValue& value, std::string_view wanted) {
  const std::string shown = value.kind == Kind::kText ? "text " + QuotedText(value.text)
                                                      : std::string(Describe(value.kind));
  throw Error::Format("must be {}, not {}", wanted, shown);
}

// Returns the whole number in a text value if it is too large for TOML, else nullopt.
std::optional<uint64_t> LargeWhole(const ConfigValue& value) {
  if (value.kind != Kind::kText) return std::nullopt;
  uint64_t whole = 0;
  const char* const end = value.text.data() + value.text.size();
  const std::from_chars_result read = std::from_chars(value.text.data(), end, whole);
  if (read.ec != std::errc() || read.ptr != end || whole <= kLargestOfToml) return std::nullopt;
  return whole;
}

}  // namespace

std::string_view Describe(Kind kind) {
  switch (kind) {
    case Kind::kFlag:
      return "true or false";
    case Kind::kWhole:
      return "a whole number";
    case Kind::kReal:
      return "a number with a fraction or exponent";
    case Kind::kText:
      return "text";
    case Kind::kDate:
      return "a date or time";
    case Kind::kArray:
      return "an array";
    case Kind::kTable:
      return "a table";
  }
  return "?";
}

bool RealRange::Holds(double x) const {
  if (!std::isfinite(x)) return false;
  return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
}

std::string RealRange::Text() const {
  std::string text = fmt::format("{} {} x", low, low_open ? "<" : "<=");
  if (std::isfinite(high)) text += fmt::format(" {} {}", high_open ? "<" : "<=", high);
  return text;
}

bool ReadFlag(const ConfigValue& value) {
  if (value.kind != Kind::kFlag) WrongType(value, Describe(Kind::kFlag));
  return value.flag;
}

uint64_t ReadWhole(const ConfigValue& value, uint64_t low, uint64_t high) {
  const std::optional<uint64_t> large = LargeWhole(value);
  if (!large.has_value() && value.kind != Kind::kWhole) WrongType(value, Describe(Kind::kWhole));
  const uint64_t whole = large.value_or(static_cast<uint64_t>(value.whole));
  if (!large.has_value() && value.whole < 0) {
    throw Error::Format("{} is below {}", value.whole, low);
  }
  if (whole < low) throw Error::Format("{} is below {}", whole, low);
  if (whole > high) throw Error::Format("{} is above {}", whole, high);
  return whole;
}

int64_t ReadSigned(const ConfigValue& value, int64_t low, int64_t high) {
  if (value.kind != Kind::kWhole) WrongType(value, Describe(Kind::kWhole));
  if (value.whole < low || value.whole > high) {
    throw Error::Format("{} is not between {} and {}", value.whole, low, high);
  }
  return value.whole;
}

double ReadReal(const ConfigValue& value, const RealRange& range) {
  if (value.kind != Kind::kReal && value.kind != Kind::kWhole) WrongType(value, "a number");
  const double x = value.kind == Kind::kReal ? value.real : static_cast<double>(value.whole);
  if (!range.Holds(x)) throw Error::Format("{} is out of range: {}", x, range.Text());
  return x;
}

std::string ReadText(const ConfigValue& value) {
  if (value.bare.has_value() && value.kind != Kind::kText) return *value.bare;
  if (value.kind != Kind::kText) WrongType(value, Describe(Kind::kText));
  return value.text;
}

std::vector<std::string> ReadTexts(const ConfigValue& value) {
  if (value.kind == Kind::kText) {
    return value.text.empty() ? std::vector<std::string>() : std::vector{value.text};
  }
  if (value.kind != Kind::kArray || value.elements.size() != static_cast<size_t>(value.whole)) {
    WrongType(value, "an array of texts");
  }
  std::vector<std::string> texts;
  for (const ConfigValue& element : value.elements) {
    if (element.kind != Kind::kText) {
      throw Error::Format("must be an array of texts, not one with {}", Describe(element.kind));
    }
    texts.push_back(element.text);
  }
  return texts;
}

std::string FlagText(bool flag) { return flag ? "true" : "false"; }

std::string WholeText(uint64_t whole) {
  return whole <= kLargestOfToml ? fmt::format("{}", whole) : fmt::format("\"{}\"", whole);
}

std::string RealText(double real) { return fmt::format("{}", real); }

std::string QuotedText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string QuotedTexts(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", QuotedText(text));
  }
  return fmt::format("[{}]", list);
}

}  // namespace numsim
