// One thread's share of cast.h, for kernels that run their own loops over threads. Same results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim {

// R of element i of a call; 0 unless the plan's mode is stochastic.
inline uint32_t Draw(const EncodePlan& plan, const ArrayRandom& random, size_t i) noexcept {
  if (plan.rounding.mode != RoundingMode::kStochastic) return 0;
  return RandomBits(random.stream, random.first_index + i, plan.rounding.random_bits);
}

// Requires a code type of plan.format.StorageBytes() and no overlap.
void EncodeSerial(const EncodePlan& plan,
                  const float* in,
                  size_t n,
                  uint8_t* codes,
                  const ArrayRandom& random) noexcept;
void EncodeSerial(const EncodePlan& plan,
                  const float* in,
                  size_t n,
                  uint16_t* codes,
                  const ArrayRandom& random) noexcept;
void EncodeSerial(const EncodePlan& plan,
                  const float* in,
                  size_t n,
                  uint32_t* codes,
                  const ArrayRandom& random) noexcept;

void DecodeSerial(const FormatSpec& format, const uint8_t* codes, size_t n, float* out) noexcept;
void DecodeSerial(const FormatSpec& format, const uint16_t* codes, size_t n, float* out) noexcept;
void DecodeSerial(const FormatSpec& format, const uint32_t* codes, size_t n, float* out) noexcept;

// in may equal out.
void FakeQuantizeSerial(const EncodePlan& plan,
                        const float* in,
                        size_t n,
                        float* out,
                        const ArrayRandom& random) noexcept;

}  // namespace numsim
