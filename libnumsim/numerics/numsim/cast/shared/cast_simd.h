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

// Scales and encodes a prefix of `in` in one pass and returns its length (0 if no vector kernel
// applies). codes[i] = the code of in[i] * factor, or of in[i] * factors[i], the product rounded to
// float32. Prefetches `ahead` elements ahead. Requires the default floating-point environment and
// EncodesInVectors(plan).
size_t EncodeScaledSimd(
    const EncodePlan& plan, const float* in, size_t n, float factor, size_t ahead, uint8_t* codes);
size_t EncodeScaledSimd(const EncodePlan& plan,
                        const float* in,
                        size_t n,
                        const float* factors,
                        size_t ahead,
                        uint8_t* codes);

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
