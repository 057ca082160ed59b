// The vector implementation behind EncodeF64Serial (round_f64.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim {

// True if the functions below serve the plan: always, except in a format with an uncommon subnormal
// gap.
bool EncodesF64InVectors(const EncodePlan& plan) noexcept;

// Writes codes[i] = the code of x[i], for any length. Requires EncodesF64InVectors(plan).
void EncodeF64Simd(
    const EncodePlan& plan, const double* x, size_t n, uint8_t* codes, const ArrayRandom& random);
void EncodeF64Simd(
    const EncodePlan& plan, const double* x, size_t n, uint16_t* codes, const ArrayRandom& random);
void EncodeF64Simd(
    const EncodePlan& plan, const double* x, size_t n, uint32_t* codes, const ArrayRandom& random);

}  // namespace numsim
