#include "numsim/data/utf8_file.h"

#include "numsim/base/error.h"
#include "numsim/io/input_file.h"

namespace numsim {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

uint8_t ByteAt(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }
bool Continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Returns the number of bytes of the well-formed sequence that begins at `i`, or 0 if there is
// none.
size_t SequenceBytes(std::string_view text, size_t i) {
  const uint8_t first = ByteAt(text, i);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() - i < size) return 0;
  for (size_t k = 1; k < size; ++k) {
    if (!Continues(ByteAt(text, i + k))) return 0;
  }
  const uint8_t second = ByteAt(text, i + 1);
  if (first == 0xE0 && second < 0xA0) return 0;   // overlong
  if (first == 0xED && second >= 0xA0) return 0;  // surrogates
  if (first == 0xF0 && second < 0x90) return 0;   // overlong
  if (first == 0xF4 && second >= 0x90) return 0;  // above U+10FFFF
  return size;
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = SequenceBytes(text, i);
    if (bytes == 0) return i;
    i += bytes;
  }
  return std::nullopt;
}

size_t NextCharacter(std::string_view text, size_t offset) {
  while (offset < text.size() && Continues(ByteAt(text, offset))) ++offset;
  return offset;
}

std::string ReadUtf8File(const std::filesystem::path& path) {
  std::string text = ReadText(path);
  if (const std::optional<size_t> fault = FindInvalidUtf8(text)) {
    throw Error::Format("{}: byte 0x{:02x} at offset {} is not valid UTF-8",
                        path.string(),
                        ByteAt(text, *fault),
                        *fault);
  }
  if (std::string_view(text).starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (text.empty()) throw Error::Format("{}: holds no text", path.string());
  return text;
}

}  // namespace numsim
