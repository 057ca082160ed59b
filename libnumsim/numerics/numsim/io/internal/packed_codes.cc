#include "numsim/io/internal/packed_codes.h"

#include <cstdint>

namespace numsim {

std::vector<std::byte> UnpackCodes(std::span<const std::byte> packed, size_t count, size_t bits) {
  std::vector<std::byte> codes(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t byte = i * bits / 8, shift = i * bits % 8;
    uint32_t window = std::to_integer<uint32_t>(packed[byte]);
    if (shift + bits > 8) window |= std::to_integer<uint32_t>(packed[byte + 1]) << 8;
    codes[i] = static_cast<std::byte>(window >> shift & ((1u << bits) - 1));
  }
  return codes;
}

std::vector<std::byte> PackCodes(std::span<const std::byte> codes, size_t bits) {
  std::vector<std::byte> packed((codes.size() * bits + 7) / 8);
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t byte = i * bits / 8, shift = i * bits % 8;
    const uint32_t window = (std::to_integer<uint32_t>(codes[i]) & ((1u << bits) - 1)) << shift;
    packed[byte] |= static_cast<std::byte>(window & 0xFF);
    if (shift + bits > 8) packed[byte + 1] |= static_cast<std::byte>(window >> 8);
  }
  return packed;
}

}  // namespace numsim
