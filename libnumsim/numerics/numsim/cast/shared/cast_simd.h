// The vector implementations behind cast.h, for one thread and any length. Used by cast.cc and
// quantize.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim {

// True if the vector code serves the conversion. Otherwise cast.cc uses the scalar rule.
bool EncodesInVectors(const EncodePlan& plan) noexcept;
bool DecodesInVectors(const FormatSpec& format) noexcept;

// Writes codes[i] = the code of in[i]. Requires EncodesInVectors(plan).
void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint8_t* codes, const ArrayRandom& random);
void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint16_t* codes, const ArrayRandom& random);
void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint32_t* codes, const ArrayRandom& random);

// The factors of elements: element i has each[i >> log_run]. Runs of more than one element have at least
// kLeastRun, those of the longest vector.
struct RunFactors {
  static constexpr int kOneRun = 63;  // all elements have each[0]
  static constexpr size_t kLeastRun = 16;

  const float* each;
  int log_run;
};

// Scales and encodes a prefix of `in` in one pass and returns its length (0 if no vector kernel
// applies). codes[i] = the code of the product of in[i] and its factor, rounded to float32. Prefetches
// `ahead` elements ahead. Requires the default floating-point environment and EncodesInVectors(plan).
size_t EncodeScaledSimd(const EncodePlan& plan,
                        const float* in,
                        size_t n,
                        const RunFactors& factors,
                        size_t ahead,
                        uint8_t* codes,
                        const ArrayRandom& random);

// Writes out[i] = the value that in[i] rounds to. Requires EncodesInVectors(plan) and
// DecodesInVectors(plan.format). `in` may equal `out`.
void FakeQuantizeSimd(
    const EncodePlan& plan, const float* in, size_t n, float* out, const ArrayRandom& random);

// The way in which results are written: into the caches, or past them, which is faster for results
// that the caches cannot hold and slower for others.
enum class Stores { kCached, kStreaming };

// Writes out[i] = the value of codes[i]. Requires DecodesInVectors(format).
void DecodeSimd(
    const FormatSpec& format, const uint8_t* codes, size_t n, float* out, Stores stores);
void DecodeSimd(
    const FormatSpec& format, const uint16_t* codes, size_t n, float* out, Stores stores);

// Writes out[i] = RandomBits(random.stream, random.first_index + i, bits).
void RandomBitsSimd(const ArrayRandom& random, int bits, size_t n, uint32_t* out);

}  // namespace numsim
