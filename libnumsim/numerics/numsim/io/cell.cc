#include "numsim/io/cell.h"

#include <charconv>
#include <cmath>
#include <type_traits>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"

namespace numsim {
namespace {

template <typename T>
std::string ShortestText(T value) {
  char buffer[32];  // the longest double takes 24
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

double Parse(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    throw Error::Format("'{}' is not a number", Printable(text));
  }
  return value;
}

}  // namespace

std::string FormatCell(double value) {
  // Omits the sign of a NaN, which depends on compiler and processor.
  if (std::isnan(value)) return "nan";
  return ShortestText(value);
}
std::string FormatCell(int64_t value) { return ShortestText(value); }
std::string FormatCell(uint64_t value) { return ShortestText(value); }
std::string FormatCell(int value) { return ShortestText(value); }
std::string FormatCell(std::string_view text) { return std::string(text); }

std::string Cell::Text() const {
  return std::visit([](const auto& value) { return FormatCell(value); }, value_);
}

double Cell::Number() const {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return Parse(value);
        } else {
          return static_cast<double>(value);
        }
      },
      value_);
}

}  // namespace numsim
