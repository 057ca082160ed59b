// Messages of nlohmann's exceptions for users.
#pragma once

#include <string>
#include <string_view>

namespace numsim::experiments {

// Returns the message of such an exception without the "[json.exception.KIND.NUMBER] " before it.
inline std::string PlainJsonMessage(std::string_view what) {
  const size_t end = what.starts_with('[') ? what.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

}  // namespace numsim::experiments
