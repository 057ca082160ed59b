// Compares float32 by its bits: -0 equals 0 otherwise, and NaN nothing.
#pragma once

#include <cstring>
#include <span>

// Returns true if both have the same bits.
inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}
