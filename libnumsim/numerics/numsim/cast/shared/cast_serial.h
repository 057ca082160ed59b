// The functions of cast.h on one thread, for kernels that run their own parallel loops. Results are
// the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim {

// Returns the randomness of the elements from number `elements` of a call on.
inline ArrayRandom Advance(const ArrayRandom& random, size_t elements) noexcept {
  return {random.stream, random.first_index + elements};
}

// Returns the random bits R of element i of a call, in the low end; 0 unless the plan's mode is
// stochastic.
inline uint32_t Draw(const EncodePlan& plan, const ArrayRandom& random, size_t i) noexcept {
  if (plan.rounding.mode != RoundingMode::kStochastic) return 0;
  return RandomBits(random.stream, random.first_index + i, plan.rounding.random_bits);
}

// Writes codes[i] = the code of in[i]. Requires a code type of plan.format.StorageBytes() bytes and
// no overlap.
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

// Writes out[i] = the value of codes[i]. Bits above the format's width are ignored. Requires no
// overlap.
void DecodeSerial(const FormatSpec& format, const uint8_t* codes, size_t n, float* out) noexcept;
void DecodeSerial(const FormatSpec& format, const uint16_t* codes, size_t n, float* out) noexcept;
void DecodeSerial(const FormatSpec& format, const uint32_t* codes, size_t n, float* out) noexcept;

// Writes out[i] = the value that in[i] rounds to. `in` may equal `out`.
void FakeQuantizeSerial(const EncodePlan& plan,
                        const float* in,
                        size_t n,
                        float* out,
                        const ArrayRandom& random) noexcept;

}  // namespace numsim
