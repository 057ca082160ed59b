#include "numsim/base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace numsim {

namespace {

// Returns the number of bytes of the UTF-8 character at the start of `text`; 0 if there is none.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  size_t length = 0;
  if (first < 0x80) {
    length = 1;
  } else if (first >= 0xC2 && first < 0xF5) {
    length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  }
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Forms that are longer than needed, surrogates, and numbers above U+10FFFF.
  const bool bad = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
                   (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90);
  return bad ? 0 : length;
}

}  // namespace

std::string Printable(std::string_view text, size_t limit) {
  std::string result;
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = CharacterLength(text.substr(at));
    if (at + std::max<size_t>(length, 1) > limit) return result + "...";
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

}  // namespace numsim
