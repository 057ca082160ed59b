// Inputs of the tests of profiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/reference/oracle.h"

namespace reference {

// Float32 patterns of both signs: every fp16 and bf16 number as float32, every value and midpoint
// of the format with its neighbours, values where rules of conversion change (overflow, the ranges
// of HIP's shifts), NaNs of many payloads, and `random` random patterns.
std::vector<uint32_t> Float32Patterns(const std::string& format, int random);
// Float64 patterns of the same kinds.
std::vector<uint64_t> Float64Patterns(const std::string& format, int random);

// Float32 patterns whose upper 20 bits are given and whose lower 12 bits are near an end or the
// middle: for each of the 2^20 upper parts six patterns.
inline constexpr uint32_t kLowParts[] = {0x000, 0x001, 0x7FF, 0x800, 0x801, 0xFFF};

}  // namespace reference
