// A float32 split into two halves of 16 bits: a bf16 weight and a signed remainder.
// [TransformerEngine]
#pragma once

#include <bit>
#include <cstdint>

#include "numsim/base/host_device.h"

namespace numsim {

struct SplitWeight {
  float weight = 0;        // a value of bf16: the master rounded to nearest, ties away from zero
  uint16_t remainder = 0;  // bits(master) - (bits(weight) << 16), in two's complement
};

// Returns the master m with bits(m) = (bits(weight) << 16) + remainder. Halves that do not belong
// together may give any bits, including a NaN.
NUMSIM_HOST_DEVICE inline float JoinMaster(float weight, uint16_t remainder) {
  const uint32_t upper = std::bit_cast<uint32_t>(weight) & 0xFFFF0000u;
  const int32_t lower = static_cast<int16_t>(remainder);
  return std::bit_cast<float>(upper + static_cast<uint32_t>(lower));
}

// Splits a master into weight and remainder. A magnitude whose weight would overflow, including
// infinity, is clamped to the greatest whose weight does not. NaN gives a NaN weight and a zero
// remainder.
NUMSIM_HOST_DEVICE inline SplitWeight SplitMaster(float master) {
  constexpr uint32_t kGreatest = 0x7F7F7FFFu;  // the next one rounds to 2^128
  const uint32_t bits = std::bit_cast<uint32_t>(master);
  const uint32_t sign = bits & 0x80000000u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {std::bit_cast<float>(sign | 0x7FC00000u), 0};
  magnitude = magnitude < kGreatest ? magnitude : kGreatest;
  const uint32_t weight = (magnitude + 0x8000u) & 0xFFFF0000u;
  return {std::bit_cast<float>(sign | weight), static_cast<uint16_t>(magnitude)};
}

}  // namespace numsim
