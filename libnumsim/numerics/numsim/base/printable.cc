#include "numsim/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

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

// Returns the number of a valid character.
uint32_t CodePoint(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7Fu >> character.size());
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return code;
}

// Returns true for characters outside of ASCII that are not seen, end a line, or turn the direction of
// writing: control and formatting characters of Unicode.
bool IsInvisible(uint32_t code) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x80, 0x9F},       // controls
      {0xAD, 0xAD},       // soft hyphen
      {0x61C, 0x61C},     // Arabic letter mark
      {0x180E, 0x180E},   // Mongolian vowel separator
      {0x200B, 0x200F},   // of no width, marks of direction
      {0x2028, 0x202E},   // separators of lines, embeddings and overrides of direction
      {0x2060, 0x206F},   // joiners, isolates of direction
      {0xFEFF, 0xFEFF},   // byte order mark
      {0xFFF9, 0xFFFB},   // annotations
      {0xE0000, 0xE007F}  // tags
  };
  return std::any_of(std::begin(kRanges), std::end(kRanges), [&](const auto& range) {
    return code >= range.first && code <= range.second;
  });
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
      continue;
    }
    const std::string_view character = text.substr(at, length);
    const uint32_t code = CodePoint(character);
    result += IsInvisible(code) ? fmt::format("\\u{:04x}", code) : std::string(character);
    at += length;
  }
  return result;
}

namespace {

// Returns the text as Printable does; of one above `most` bytes, a multiple of 3, the middle is left
// out.
std::string WithoutMiddle(std::string_view text, size_t most) {
  if (text.size() <= most) return Printable(text, most);
  return Printable(text, most / 3 * 2) + Printable(text.substr(text.size() - most / 3), most);
}

}  // namespace

std::string PrintableMessage(std::string_view message) {
  constexpr size_t kMessage = 1800, kWord = 300;
  std::string text;
  while (!message.empty()) {
    const size_t space = std::min(message.find(' '), message.size());
    text += WithoutMiddle(message.substr(0, space), kWord);
    if (space < message.size()) text += ' ';
    message.remove_prefix(std::min(space + 1, message.size()));
  }
  return WithoutMiddle(text, kMessage);
}

}  // namespace numsim
