#include "numsim/io/shared/printable.h"

#include <fmt/format.h>

namespace numsim {

std::string Printable(std::string_view text, size_t limit) {
  std::string result;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  if (text.size() > limit) result += "...";
  return result;
}

}  // namespace numsim
