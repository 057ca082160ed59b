// The vector implementations behind cast.h; only cast.cc calls them. One thread, any length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/kernels/cast.h"

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
void FakeQuantizeSimd(
    const EncodePlan& plan, const float* in, size_t n, float* out, const ArrayRandom& random);
void DecodeSimd(const FormatSpec& format, const uint8_t* codes, size_t n, float* out);
void DecodeSimd(const FormatSpec& format, const uint16_t* codes, size_t n, float* out);
void RandomBitsSimd(const ArrayRandom& random, int bits, size_t n, uint32_t* out);

}  // namespace numsim
