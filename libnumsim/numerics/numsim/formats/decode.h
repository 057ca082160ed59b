// Converts codes to their exact values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "numsim/formats/format_spec.h"

namespace numsim {

// Returns the value of `code`, exactly. NaN codes give a quiet float32 NaN that carries the sign of
// the code where the format has NaNs of both signs, and a positive one otherwise. The unused code
// of a symmetric two's complement grid gives its two's complement value (-128 for int8).
// Requires code <= format.CodeMask() and a format that ValidateFormat accepts.
float Decode(const FormatSpec& format, uint32_t code) noexcept;

// Returns Decode for every code 0 .. CodeMask(). Requires Bits() <= 16.
std::vector<float> DecodeTable(const FormatSpec& format);

// The exact value of a finite magnitude code: significand * 2^exponent.
struct Dyadic {
  uint32_t significand;
  int exponent;
};
// Returns the exact value of a finite magnitude code. Requires a format that is no table of values.
Dyadic MagnitudeValue(const FormatSpec& format, uint32_t magnitude_code) noexcept;

// Return the largest finite value, the smallest positive normal and the smallest positive value. Of a
// table of values: the largest magnitude, and twice the smallest positive value.
float MaxFinite(const FormatSpec& format) noexcept;
// Returns floor(log2 MaxFinite), of tables of values too.
int LargestExponent(const FormatSpec& format) noexcept;
float MinNormal(const FormatSpec& format) noexcept;
float MinPositive(const FormatSpec& format) noexcept;

}  // namespace numsim
