// Reads numbers from texts.
#pragma once

#include <charconv>
#include <string>
#include <system_error>

namespace numsim::experiments {

// Parses the whole of `text` as a T. Returns false when it is not a T or does not fit.
template <typename T>
bool Parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  return status == std::errc() && rest == end;
}

}  // namespace numsim::experiments
