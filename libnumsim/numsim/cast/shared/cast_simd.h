// The vector implementations behind cast.h, for cast.cc and quantize.cc. One thread, any length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim {

// Whether the vector code serves that conversion; otherwise cast.cc takes the scalar rule.
bool EncodesInVectors(const EncodePlan& plan) noexcept;
bool DecodesInVectors(const FormatSpec& format) noexcept;

void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint8_t* codes, const ArrayRandom& random);
void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint16_t* codes, const ArrayRandom& random);
void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint32_t* codes, const ArrayRandom& random);
// codes[i] = code of in[i] * factor, or in[i] * factors[i], the product rounded to float32, in one
// pass: for as many elements, from the first on, as there is one for. Returns how many, possibly 0.
// What lies `ahead` elements on is read next. Requires the default floating-point environment and
// EncodesInVectors(plan).
size_t EncodeScaledSimd(
    const EncodePlan& plan, const float* in, size_t n, float factor, size_t ahead, uint8_t* codes);
size_t EncodeScaledSimd(const EncodePlan& plan,
                        const float* in,
                        size_t n,
                        const float* factors,
                        size_t ahead,
                        uint8_t* codes);
void FakeQuantizeSimd(
    const EncodePlan& plan, const float* in, size_t n, float* out, const ArrayRandom& random);
void DecodeSimd(const FormatSpec& format, const uint8_t* codes, size_t n, float* out);
void DecodeSimd(const FormatSpec& format, const uint16_t* codes, size_t n, float* out);
void RandomBitsSimd(const ArrayRandom& random, int bits, size_t n, uint32_t* out);

}  // namespace numsim
