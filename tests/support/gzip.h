// The bytes of gzip files, made without the library and without zlib.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace numsim {

// CRC-32 as in [GZIP], bit by bit.
inline uint32_t Crc32(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// One gzip member [GZIP] that stores the bytes uncompressed.
inline std::string Gzip(std::string_view bytes) {
  const auto little_endian = [](uint32_t word, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>(word >> 8 * i & 0xFF);
    return text;
  };
  std::string file("\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10);
  std::string_view rest = bytes;
  do {
    const std::string_view block = rest.substr(0, 0xFFFF);
    rest.remove_prefix(block.size());
    const auto size = static_cast<uint32_t>(block.size());
    file += rest.empty() ? '\1' : '\0';
    file += little_endian(size, 2) + little_endian(~size, 2);
    file += block;
  } while (!rest.empty());
  return file + little_endian(Crc32(bytes), 4) +
         little_endian(static_cast<uint32_t>(bytes.size()), 4);
}

}  // namespace numsim
