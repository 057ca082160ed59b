// Codes of less than 8 bits, which files pack and memory holds in one byte each.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace numsim {

// Code i has the bits i * bits to (i + 1) * bits - 1 of the packed bytes, the lowest bit of each byte
// first: of two codes of 4 bits, the first is in the lower half of the byte. Both functions
// require 1 <= bits <= 8.

// Returns the codes, one per byte. Requires packed.size() * 8 >= count * bits.
std::vector<std::byte> UnpackCodes(std::span<const std::byte> packed, size_t count, size_t bits);
// Returns the packed bytes; bits that no code uses are 0. Bits of a code above `bits` are dropped.
std::vector<std::byte> PackCodes(std::span<const std::byte> codes, size_t bits);

}  // namespace numsim
