// Byte order of elements in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace numsim {

// Reverses the bytes of each element in place. Requires bytes.size() to be a multiple of
// `element_bytes` >= 1.
inline void ReverseBytesOfElements(std::span<std::byte> bytes, size_t element_bytes) {
  if (element_bytes == 1) return;
  for (size_t i = 0; i < bytes.size(); i += element_bytes) {
    std::reverse(bytes.begin() + i, bytes.begin() + i + element_bytes);
  }
}

}  // namespace numsim
